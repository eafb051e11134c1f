/** The operations of the API server that controllers use. `connect` (connection.ts) makes one that speaks HTTPS. */
import type { GroupKind } from "./discovery.ts";
import type { KubeObject, ObjectMeta, ObjectRef, Resource, ResourceNames } from "../resource.ts";

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Replaces the client's own deadline for this call: of all its attempts and the reading of the answer. */
  readonly timeoutMs?: number;
  /** Use no pooled connection: after one fell silent, the others may be dead as well. */
  readonly freshConnection?: boolean;
}

export interface ListOptions<T = KubeObject> extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Page size, 500 unless told; 0 asks for one piece. The pages are joined. The deadline is each page's. */
  readonly pageSize?: number;
  /** Called for each object as its page arrives: what it drops is never held for the whole list. */
  readonly transform?: (object: T) => T;
}

export interface ObjectList<T> {
  readonly resourceVersion: string;
  readonly items: T[];
}

/** `timeoutMs` is the time in which the watch must begin; how long it lasts is for the server and the signal. */
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
  /** What becomes of a field that the schema does not know: refused, or dropped (with a warning, the server's default). */
  readonly fieldValidation?: "Strict" | "Warn" | "Ignore";
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
  { readonly type: "merge"; readonly body: object } | { readonly type: "json"; readonly body: readonly object[] };

export interface DeleteOptions extends WriteOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
  readonly gracePeriodSeconds?: number;
}

/** Any part of an object; a list is given whole. */
type Sparse<T> = T extends readonly unknown[] ? T : T extends object ? { readonly [K in keyof T]?: Sparse<T[K]> } : T;

/** What an apply sends: identity, and the fields the manager wants to own. */
export type ApplyBody<T extends KubeObject> = Pick<T, "apiVersion" | "kind"> & {
  readonly metadata: ObjectMeta & { readonly name: string };
} & Sparse<Omit<T, "apiVersion" | "kind" | "metadata">>;

export interface TokenRequest extends CallOptions {
  readonly audiences: readonly string[];
  readonly expirationSeconds?: number;
}

/** `timeoutMs` limits the whole reading, or with `follow` only its beginning. */
export interface LogOptions extends CallOptions {
  readonly container?: string;
  readonly follow?: boolean;
  readonly tailLines?: number;
  readonly limitBytes?: number;
  readonly previous?: boolean;
}

/**
 * Every method throws an `ApiError` (errors.ts) for an answer that is not success, a `ConnectionError` when none comes in
 * time, and the signal's reason when the caller aborts. Failures that pass are retried where doing a call twice is the same
 * as doing it once, or the server cannot have done it: a `create` is never sent twice to a server that may have got it.
 */
export interface Client {
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<T>;
  /** Like `get`, with undefined for an object that does not exist. */
  find<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<T | undefined>;
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions<T>): Promise<ObjectList<T>>;
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
  /** Each version that serves the kind, the server's preferred one first; none when there is no such kind. */
  discover(kind: GroupKind, options?: CallOptions): Promise<ResourceNames[]>;
  /** The API server's clock, to the second; undefined where it does not tell. */
  serverTime(options?: CallOptions): Promise<Date | undefined>;
}
