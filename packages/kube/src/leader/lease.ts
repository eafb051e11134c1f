/** Reads and writes the Lease that names the leader. Each write is conditional on the version that was read. */
import { builtin } from "../client/builtin.ts";
import type { CallOptions, Client } from "../client/client.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../client/errors.ts";
import type { ObjectRef } from "../resource.ts";

export interface LeaseState {
  /** Changes with every write. */
  readonly version: string;
  /** Empty when the Lease is free. */
  readonly holder: string;
  /** How long after its last renewal no other candidate may take it. */
  readonly durationMs: number;
  /** How often the holder changed; only grows. */
  readonly transitions: number;
  /** Our writes keep those that people set. */
  readonly annotations: Annotations;
}

export type Annotations = Readonly<Record<string, string>>;

export interface LeaseChange {
  readonly holder: string;
  readonly durationMs: number;
  readonly transitions: number;
  /** When this holder took it; unchanged if absent. */
  readonly acquiredAt?: number;
  readonly renewedAt: number;
  /** Added to those that the Lease has. */
  readonly annotations?: Annotations;
}

export interface LeaseLock {
  read(options: CallOptions): Promise<LeaseState | undefined>;
  /** Undefined if another candidate created it first. */
  create(change: LeaseChange, options: CallOptions): Promise<LeaseState | undefined>;
  /** Undefined if it was changed or deleted since. */
  update(from: LeaseState, change: LeaseChange, options: CallOptions): Promise<LeaseState | undefined>;
}

type LeaseObject = NonNullable<typeof builtin.leases.object>;

export function leaseLock(client: Client, ref: ObjectRef): LeaseLock {
  return {
    async read(options) {
      const lease = await client.find(builtin.leases, ref, options);
      return lease && leaseState(lease);
    },
    async create(change, options) {
      const { apiVersion, kind } = builtin.leases;
      const lease = { apiVersion, kind, metadata: { ...ref, ...annotated(change) }, spec: leaseSpec(change) };
      const created = await undefinedOn(isAlreadyExists, client.create(builtin.leases, lease, options));
      return created && leaseState(created);
    },
    async update(from, change, options) {
      // Compare and swap: the API server rejects the patch if the version in its body is not the current one.
      const body = { metadata: { resourceVersion: from.version, ...annotated(change) }, spec: leaseSpec(change) };
      const patch = client.patch(builtin.leases, ref, { ...options, patch: { type: "merge", body } });
      const updated = await undefinedOn((error) => isConflict(error) || isNotFound(error), patch);
      return updated && leaseState(updated);
    },
  };
}

const annotated = ({ annotations }: LeaseChange) => (annotations ? { annotations: { ...annotations } } : {});

/** The holder of a Lease, or an empty string. */
export function holderOf(lease: LeaseObject): string {
  return lease.spec?.holderIdentity ?? "";
}

function leaseState(lease: LeaseObject): LeaseState {
  return {
    version: lease.metadata.resourceVersion ?? "",
    holder: holderOf(lease),
    durationMs: (lease.spec?.leaseDurationSeconds ?? 0) * 1000,
    transitions: lease.spec?.leaseTransitions ?? 0,
    annotations: lease.metadata.annotations ?? {},
  };
}

function leaseSpec(change: LeaseChange): NonNullable<LeaseObject["spec"]> {
  return {
    holderIdentity: change.holder,
    leaseDurationSeconds: Math.max(1, Math.ceil(change.durationMs / 1000)),
    leaseTransitions: change.transitions,
    renewTime: microTime(change.renewedAt),
    ...(change.acquiredAt !== undefined && { acquireTime: microTime(change.acquiredAt) }),
  };
}

/** Kubernetes' MicroTime: exactly six decimal places. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}

async function undefinedOn<T>(expected: (error: unknown) => boolean, call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (expected(error)) return undefined;
    throw error;
  }
}
