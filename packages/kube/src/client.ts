/** The operations of the API server that controllers use. `connect` (connection.ts) makes one that speaks HTTPS. */
import type { KubeObject, ObjectRef, Resource } from "./resource.ts";

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Replaces the client's own deadline for this call. */
  readonly timeoutMs?: number;
}

export interface ListOptions extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Page size; the pages are joined. */
  readonly pageSize?: number;
}

export interface ObjectList<T> {
  readonly resourceVersion: string;
  readonly items: T[];
}

export interface WatchOptions extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly resourceVersion: string;
  /** Asks the server to end the watch after this long. */
  readonly serverTimeoutSeconds?: number;
}

export type WatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string };

export interface WriteOptions extends CallOptions {
  readonly dryRun?: boolean;
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  /** Take fields from other managers. Controllers own what they write, so this is true unless told otherwise. */
  readonly force?: boolean;
  readonly subresource?: "status" | "scale";
}

export interface PatchOptions extends WriteOptions {
  readonly fieldManager?: string;
  readonly subresource?: "status" | "scale";
}

export type Patch =
  | { readonly type: "merge"; readonly body: object }
  | { readonly type: "json"; readonly body: readonly object[] };

export interface DeleteOptions extends WriteOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
  readonly gracePeriodSeconds?: number;
}

/** What an apply sends: identity, and the fields the manager wants to own. */
export type ApplyBody<T extends KubeObject> = Pick<T, "apiVersion" | "kind"> & {
  readonly metadata: { readonly name: string; readonly namespace?: string };
} & Partial<Omit<T, "apiVersion" | "kind" | "metadata">>;

export interface TokenRequest extends CallOptions {
  readonly audiences: readonly string[];
  readonly expirationSeconds?: number;
}

export interface LogOptions extends CallOptions {
  readonly container?: string;
  readonly follow?: boolean;
  readonly tailLines?: number;
  readonly limitBytes?: number;
  readonly previous?: boolean;
}

/** Every method throws an `ApiError` (errors.ts) for an answer that is not success. */
export interface Client {
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<T>;
  /** Like `get`, with undefined for an object that does not exist. */
  find<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<T | undefined>;
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<ObjectList<T>>;
  /** Ends when the server ends the watch; throws when it breaks, and `ApiError` with `reason: "Expired"` on 410. */
  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  create<T extends KubeObject>(resource: Resource<T>, object: T, options?: PatchOptions): Promise<T>;
  apply<T extends KubeObject>(resource: Resource<T>, body: ApplyBody<T>, options: ApplyOptions): Promise<T>;
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    change: { readonly patch: Patch } & PatchOptions,
  ): Promise<T>;
  delete(resource: Resource, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  createToken(serviceAccount: ObjectRef, request: TokenRequest): Promise<{ token: string; expiresAt: Date }>;
  podLogs(pod: ObjectRef, options?: LogOptions): Promise<ReadableStream<Uint8Array>>;
}
