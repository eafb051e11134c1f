/** The API operations that controllers use. `connect` (connection.ts) implements them over HTTPS. */
import type { GroupKind } from "./discovery.ts";
import type { KubeObject, ObjectMeta, ObjectRef, Resource, ResourceNames } from "../resource.ts";

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Replaces the client's deadline for this call; includes all attempts and reading the response. */
  readonly timeoutMs?: number;
  /** Do not use a pooled connection: when one connection is dead, the others may be too. */
  readonly freshConnection?: boolean;
}

export interface ListOptions<T = KubeObject> extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Page size, 500 by default; 0 requests everything in one page. The pages are joined. Each page has its own deadline. */
  readonly pageSize?: number;
  /** Requests the next page before the caller has processed the current one. For a caller that reads all pages. */
  readonly prefetch?: boolean;
  /** Called for each object as its page arrives, so that what it drops is never kept in memory for the whole list. */
  readonly transform?: (object: T) => T;
}

export interface ObjectList<T> {
  readonly resourceVersion: string;
  readonly items: T[];
}

/** `timeoutMs` limits how long the watch may take to start; the server and the signal decide how long it lasts. */
export interface WatchOptions extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly resourceVersion: string;
  /** The server ends the watch after this time. */
  readonly serverTimeoutSeconds?: number;
}

export type WatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string };

export interface WriteOptions extends CallOptions {
  readonly dryRun?: boolean;
  /** For a dry run that checks whether admission denies it. Its denial is not counted as a rejected request. */
  readonly expectDenial?: boolean;
  /** Whether a field that the schema does not know is rejected or dropped. The server's default drops it with a warning. */
  readonly fieldValidation?: "Strict" | "Warn" | "Ignore";
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  /** Take fields from other managers. Controllers own what they write, so this is true by default. */
  readonly force?: boolean;
  readonly subresource?: "status" | "scale";
}

export interface PatchOptions extends WriteOptions {
  readonly fieldManager?: string;
  readonly subresource?: "status" | "scale";
}

export type Patch =
  { readonly type: "merge"; readonly body: object } | { readonly type: "json"; readonly body: readonly object[] };

export interface DeleteOptions extends WriteOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
  readonly gracePeriodSeconds?: number;
}

/** Any part of an object; lists are replaced as a whole. */
type Sparse<T> = T extends readonly unknown[] ? T : T extends object ? { readonly [K in keyof T]?: Sparse<T[K]> } : T;

/** What an apply sends: the object's identity, and the fields that the manager wants to own. */
export type ApplyBody<T extends KubeObject> = Pick<T, "apiVersion" | "kind"> & {
  readonly metadata: ObjectMeta & { readonly name: string };
} & Sparse<Omit<T, "apiVersion" | "kind" | "metadata">>;

/**
 * Every method throws an `ApiError` (errors.ts) for an unsuccessful response, a `ConnectionError` when no response arrives
 * in time, and the signal's reason when the caller aborts. Transient failures are retried if the call is idempotent or the
 * server cannot have processed it: a `create` is never sent twice to a server that may have received it.
 */
export interface Client {
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<T>;
  /** Like `get`, but returns undefined for an object that does not exist. */
  find<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<T | undefined>;
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions<T>): Promise<ObjectList<T>>;
  /**
   * The pages of a list, one request for each, for a caller that does not keep all objects. Throws an `ApiError` with
   * `reason: "Expired"` if the snapshot expires on the way. `transform` is not applied.
   */
  pages<T extends KubeObject>(
    resource: Resource<T>,
    options?: Omit<ListOptions<T>, "transform">,
  ): AsyncIterable<{ readonly resourceVersion: string; readonly items: readonly T[] }>;
  /** Ends when the server ends the watch. Throws when the connection breaks, and an `ApiError` with `reason: "Expired"` on 410. */
  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  create<T extends KubeObject>(resource: Resource<T>, object: T, options?: PatchOptions): Promise<T>;
  apply<T extends KubeObject>(resource: Resource<T>, body: ApplyBody<T>, options: ApplyOptions): Promise<T>;
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    change: { readonly patch: Patch } & PatchOptions,
  ): Promise<T>;
  delete(resource: Resource, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  /** Every version that serves the kind, the server's preferred one first; empty when the kind does not exist. */
  discover(kind: GroupKind, options?: CallOptions): Promise<ResourceNames[]>;
  /** The API server's clock, to the second; undefined if it is not known. */
  serverTime(options?: CallOptions): Promise<Date | undefined>;
}
