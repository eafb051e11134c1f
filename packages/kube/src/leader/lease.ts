/** The Lease in which replicas agree who leads: reading and writing it, each write only over the state that was read. */
import { builtin } from "../client/builtin.ts";
import type { CallOptions, Client } from "../client/client.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../client/errors.ts";
import type { ObjectRef } from "../resource.ts";

export interface LeaseState {
  /** Changes with each write, whoever wrote. */
  readonly version: string;
  /** Empty when no one holds it. */
  readonly holder: string;
  /** How long after its last renewal no one else may take it, as its holder promised. */
  readonly durationMs: number;
  /** How often it changed hands: a number that only grows. */
  readonly transitions: number;
}

export interface LeaseChange {
  readonly holder: string;
  readonly durationMs: number;
  readonly transitions: number;
  /** When this holder took it; left as it is when absent. */
  readonly acquiredAt?: number;
  readonly renewedAt: number;
}

export interface LeaseLock {
  read(options: CallOptions): Promise<LeaseState | undefined>;
  /** Undefined when someone else created it first. */
  create(change: LeaseChange, options: CallOptions): Promise<LeaseState | undefined>;
  /** Undefined when it changed since, or is gone. */
  update(from: LeaseState, change: LeaseChange, options: CallOptions): Promise<LeaseState | undefined>;
}

type LeaseObject = NonNullable<typeof builtin.leases.object>;

export function leaseLock(client: Client, ref: ObjectRef): LeaseLock {
  return {
    async read(options) {
      const lease = await client.find(builtin.leases, ref, options);
      return lease && stateOf(lease);
    },
    async create(change, options) {
      const { apiVersion, kind } = builtin.leases;
      const lease = { apiVersion, kind, metadata: { ...ref }, spec: specOf(change) };
      const created = await unless(isAlreadyExists, client.create(builtin.leases, lease, options));
      return created && stateOf(created);
    },
    async update(from, change, options) {
      // With the version in its body, the API server refuses a patch of any other state: compare and swap.
      const body = { metadata: { resourceVersion: from.version }, spec: specOf(change) };
      const patch = client.patch(builtin.leases, ref, { ...options, patch: { type: "merge", body } });
      const updated = await unless((error) => isConflict(error) || isNotFound(error), patch);
      return updated && stateOf(updated);
    },
  };
}

/** The holder named by a Lease as a watch delivers it. */
export function holderOf(lease: LeaseObject): string {
  return lease.spec?.holderIdentity ?? "";
}

function stateOf(lease: LeaseObject): LeaseState {
  return {
    version: lease.metadata.resourceVersion ?? "",
    holder: holderOf(lease),
    durationMs: (lease.spec?.leaseDurationSeconds ?? 0) * 1000,
    transitions: lease.spec?.leaseTransitions ?? 0,
  };
}

function specOf(change: LeaseChange): NonNullable<LeaseObject["spec"]> {
  return {
    holderIdentity: change.holder,
    leaseDurationSeconds: Math.max(1, Math.ceil(change.durationMs / 1000)),
    leaseTransitions: change.transitions,
    renewTime: microTime(change.renewedAt),
    ...(change.acquiredAt !== undefined && { acquireTime: microTime(change.acquiredAt) }),
  };
}

/** Kubernetes' MicroTime: exactly six digits after the point. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}

async function unless<T>(expected: (error: unknown) => boolean, call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (expected(error)) return undefined;
    throw error;
  }
}
