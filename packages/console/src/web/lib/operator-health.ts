/** Whether the operator runs, from its Lease. Pure. */
import { isOperatorSuspended } from "@pko/api/browser";

import type { ObjectMeta } from "./collection.ts";

export interface Lease extends ObjectMeta {
  readonly metadata: ObjectMeta["metadata"] & { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly renewTime?: string;
    readonly acquireTime?: string;
    readonly leaseDurationSeconds?: number;
    readonly leaseTransitions?: number;
  };
}

export interface OperatorHealth {
  readonly namespace: string;
  readonly holder: string;
  readonly isLeading: boolean;
  readonly isSuspended: boolean;
  readonly renewTime?: string;
  readonly acquireTime?: string;
  readonly transitions: number;
}

/** A leader renews its Lease every few seconds. The allowance is for a busy API server and for clocks that differ. */
const allowanceMs = 60_000;

export function operatorHealth({ metadata, spec = {} }: Lease, now: number): OperatorHealth {
  const { holderIdentity = "", renewTime, acquireTime, leaseDurationSeconds = 0, leaseTransitions = 0 } = spec;
  const expiresAt = Date.parse(renewTime ?? "") + leaseDurationSeconds * 1000 + allowanceMs;
  return {
    namespace: metadata.namespace ?? "",
    holder: holderIdentity,
    isLeading: holderIdentity !== "" && expiresAt > now,
    isSuspended: isOperatorSuspended(metadata.annotations),
    ...(renewTime !== undefined && { renewTime }),
    ...(acquireTime !== undefined && { acquireTime }),
    transitions: leaseTransitions,
  };
}
