/** etcd with the generic registry of the API server on top: versions, preconditions, finalizers, generations and history. */
import type { KubeObject, ResourceNames } from "@pko/kube";

import {
  applyFields,
  isMap,
  jsonPatch,
  managersAfterUpdate,
  mergePatch,
  shareOwnable,
  type JsonMap,
  type Managers,
} from "./fields.ts";

export interface ServedKind extends ResourceNames {
  /** Whether the status is written through a subresource only. */
  readonly hasStatus: boolean;
  /** Whether objects have a generation. */
  readonly hasGeneration: boolean;
}

/** A stored object is never changed, only replaced. */
export type Stored = KubeObject & JsonMap;

export interface Change {
  readonly revision: number;
  readonly kind: ServedKind;
  readonly before: Stored | undefined;
  /** Undefined for a deletion. */
  readonly after: Stored | undefined;
  /** The deleted object, with the revision of its deletion. */
  readonly last?: Stored;
}

/** A response with a `Status`. */
export class StatusError extends Error {
  readonly code: number;
  readonly reason: string;

  constructor(code: number, reason: string, message: string) {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}

/** With what a restore needs. */
interface Revision extends Change {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The owners of the fields. */
  readonly managers: Managers;
}

interface Entry {
  readonly object: Stored;
  readonly managers: Managers;
}

interface ObjectPath {
  readonly kind: ServedKind;
  readonly namespace: string;
  readonly name: string;
}

export interface WriteOptions {
  readonly manager: string;
  readonly isDryRun?: boolean;
  readonly subresource?: string | undefined;
  /** Called with what would be stored: throws if it is not admitted. */
  readonly admit?: (before: Stored | undefined, after: Stored) => void;
}

/** With the owners of all fields, if they are known already. */
interface OwnedWrite extends WriteOptions {
  readonly managers?: Managers;
}

export interface DeleteRequest {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: string | undefined;
  readonly gracePeriodSeconds?: number | undefined;
  readonly isDryRun?: boolean;
}

interface StorageOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly newUid: () => string;
  /** Of other clients, which have Leases and write events. None if absent. */
  readonly otherWritesPerSecond?: number;
}

const foregroundFinalizer = "foregroundDeletion";
const orphanFinalizer = "orphan";

export class Storage {
  readonly #options: StorageOptions;
  readonly #entries = new Map<string, Entry>();
  #history: Revision[] = [];
  readonly #listeners = new Set<(change: Change) => void>();
  /** A new etcd has a few revisions already. */
  #revision = 100;
  /** When the revision was last increased. */
  #revisedAt: number;
  #compacted = 0;

  constructor(options: StorageOptions) {
    this.#options = options;
    this.#revisedAt = options.now();
  }

  get revision(): number {
    return this.#revision + this.#otherWrites(this.#revisedAt, this.#options.now());
  }

  #otherWrites(from: number, to: number): number {
    return Math.floor(((to - from) / 1000) * (this.#options.otherWritesPerSecond ?? 0));
  }

  #nextRevision(): number {
    this.#revision = this.revision + 1;
    this.#revisedAt = this.#options.now();
    return this.#revision;
  }

  /** Watches must start at this revision or later. */
  get compacted(): number {
    return this.#compacted;
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  since(revision: number): readonly Change[] {
    return this.#history.filter((change) => change.revision > revision);
  }

  compact(): void {
    this.#compacted = this.revision;
    // The history itself is kept: a restore needs it.
  }

  /** Like the restore of a snapshot of that time: what happened since then never happened, and its revisions are used again. */
  restore(at: number): void {
    this.#history = this.#history.filter((change) => change.at <= at);
    this.#entries.clear();
    for (const { kind, before, after, managers } of this.#history) {
      const path = pathOf({ kind, ...refOf(after ?? before) });
      if (after) this.#entries.set(path, { object: after, managers });
      else this.#entries.delete(path);
    }
    const last = this.#history.at(-1);
    if (last) this.#revision = last.revision + this.#otherWrites(last.at, at);
    this.#revisedAt = this.#options.now();
    this.#compacted = Math.min(this.#compacted, this.#revision);
  }

  find(path: ObjectPath): Stored | undefined {
    return this.#entries.get(pathOf(path))?.object;
  }

  list(kind?: ServedKind): Stored[] {
    const prefix = kind ? prefixOf(kind) : "";
    const paths: string[] = [];
    for (const path of this.#entries.keys()) if (path.startsWith(prefix)) paths.push(path);
    return paths.toSorted().flatMap((path) => this.#entries.get(path)?.object ?? []);
  }

  /** All objects, in no particular order. */
  *objects(): Generator<Stored> {
    for (const { object } of this.#entries.values()) yield object;
  }

  create(path: Omit<ObjectPath, "name">, given: JsonMap, options: WriteOptions): Stored {
    const metadata = isMap(given["metadata"]) ? given["metadata"] : {};
    const name = nameFor(metadata, this.#options.newUid);
    if (metadata["resourceVersion"] !== undefined && metadata["resourceVersion"] !== "") {
      throw new StatusError(500, "InternalError", "resourceVersion should not be set on objects to be created");
    }
    if (this.find({ ...path, name })) throw alreadyExists(path.kind, name);
    return this.#insert({ ...path, name }, given, options);
  }

  #insert(path: ObjectPath, given: JsonMap, options: OwnedWrite): Stored {
    const { kind, namespace, name } = path;
    const { status, ...rest } = given;
    const metadata: JsonMap = isMap(given["metadata"]) ? given["metadata"] : {};
    const { resourceVersion: _, uid: __, generation: ___, managedFields: ____, ...kept } = metadata;
    const object = {
      ...rest,
      ...(status !== undefined && !kind.hasStatus && { status }),
      apiVersion: kind.apiVersion,
      kind: kind.kind,
      metadata: {
        ...kept,
        name,
        ...(kind.namespaced && { namespace }),
        uid: this.#options.newUid(),
        creationTimestamp: this.#timestamp(),
        ...(kind.hasGeneration && { generation: 1 }),
      },
    } as unknown as Stored;
    const ready = normalized(kind, object);
    options.admit?.(undefined, ready);
    const { manager, managers = managersAfterUpdate(new Map(), { manager, before: {}, after: ready }) } = options;
    return this.#put(path, { before: undefined, after: ready, managers, isDryRun: options.isDryRun });
  }

  mergePatch(path: ObjectPath, patch: JsonMap, options: WriteOptions): Stored {
    const { object } = this.#entry(path);
    return this.#update(path, mergePatch(object, patch) as JsonMap, options);
  }

  jsonPatch(
    path: ObjectPath,
    operations: readonly { op: string; path: string; value?: unknown }[],
    options: WriteOptions,
  ): Stored {
    const { object } = this.#entry(path);
    const patched = jsonPatch(object, operations);
    if (!patched) {
      throw new StatusError(422, "Invalid", "the server rejected our request due to an error in our request");
    }
    return this.#update(path, patched, options);
  }

  /** Server-side apply; creates the object if it does not exist. */
  apply(path: ObjectPath, body: JsonMap, options: WriteOptions): Stored {
    const manager = `${options.manager} apply`;
    const entry = this.#entries.get(pathOf(path));
    const metadata = isMap(body["metadata"]) ? body["metadata"] : {};
    if (!entry) {
      if (options.subresource !== undefined) throw notFound(path.kind, path.name);
      if (metadata["uid"] !== undefined) {
        throw new StatusError(
          409,
          "Conflict",
          "uid mismatch: the provided object specified uid, and no existing object was found",
        );
      }
      const { object, managers } = applyFields({ object: {}, managers: new Map() }, manager, body);
      return this.#insert(path, object, { ...options, managers });
    }
    const { object, managers } = applyFields(entry, manager, body);
    return this.#update(path, object, { ...options, manager, managers });
  }

  #update(path: ObjectPath, given: JsonMap, options: OwnedWrite): Stored {
    const { managers, subresource } = options;
    const { object: before, managers: owners } = this.#entry(path);
    const { kind, name } = path;
    const wanted: JsonMap = isMap(given["metadata"]) ? given["metadata"] : {};
    const old = before.metadata;
    const { resourceVersion = "0" } = wanted;
    // Zero means any version.
    if (resourceVersion !== "0" && resourceVersion !== "" && resourceVersion !== old.resourceVersion) {
      throw conflict(
        kind,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
      );
    }
    if (wanted["uid"] !== undefined && wanted["uid"] !== old.uid) {
      throw new StatusError(
        422,
        "Invalid",
        `${kind.kind} "${name}" is invalid: metadata.uid: Invalid value: field is immutable`,
      );
    }
    const after = subresource === "status" ? withStatus(before, given) : this.#merged(kind, before, given);
    const isSame = Bun.deepEquals(after, before);
    // A new owner of a field is a change, too.
    if (isSame && (!managers || Bun.deepEquals(managers, owners))) return before;
    checkFinalizers(kind, before, after);
    options.admit?.(before, after);
    const next = managers ?? managersAfterUpdate(owners, { manager: options.manager, before, after });
    if (old.deletionTimestamp !== undefined && isReleased(after)) {
      this.#remove(path, options.isDryRun);
      // The response has the version before the deletion, its event that of the deletion.
      return after;
    }
    return this.#put(path, { before, after, managers: next, isDryRun: options.isDryRun });
  }

  /** Everything but the status and what the server sets. */
  #merged(kind: ServedKind, before: Stored, given: JsonMap): Stored {
    const old = before.metadata;
    const { status, ...rest } = given;
    const kept = kind.hasStatus ? before["status"] : status;
    const metadata: JsonMap = isMap(given["metadata"]) ? given["metadata"] : {};
    const { resourceVersion: _, managedFields: __, generation: ___, deletionTimestamp: ____, ...written } = metadata;
    const fixed = {
      name: old.name,
      ...(old.namespace !== undefined && { namespace: old.namespace }),
      uid: old.uid,
      creationTimestamp: old.creationTimestamp,
      resourceVersion: old.resourceVersion,
      ...(old.generation !== undefined && { generation: old.generation }),
      ...(old.deletionTimestamp !== undefined && { deletionTimestamp: old.deletionTimestamp }),
      ...(old.deletionGracePeriodSeconds !== undefined && {
        deletionGracePeriodSeconds: old.deletionGracePeriodSeconds,
      }),
    };
    const { apiVersion, kind: kindName } = kind;
    const candidate = {
      ...rest,
      apiVersion,
      kind: kindName,
      metadata: { ...written, ...fixed },
      ...(kept !== undefined && { status: kept }),
    } as unknown as Stored;
    const after = normalized(kind, candidate);
    const isChanged = kind.hasGeneration && !Bun.deepEquals(desired(after), desired(before));
    return isChanged ? { ...after, metadata: { ...after.metadata, generation: (old.generation ?? 0) + 1 } } : after;
  }

  delete(path: ObjectPath, request: DeleteRequest): Stored {
    const { object: before, managers } = this.#entry(path);
    const { kind } = path;
    checkPreconditions(path, before, request);
    const finalizers = finalizersFor(request, before);
    const graceSeconds = graceFor(kind, before, request);
    const wasDeleting = before.metadata.deletionTimestamp !== undefined;
    if (finalizers.length === 0 && graceSeconds === 0) return this.#remove(path, request.isDryRun);
    const isShortened = graceSeconds < (before.metadata.deletionGracePeriodSeconds ?? 0);
    const isSame = finalizers.join() === (before.metadata.finalizers ?? []).join();
    if (wasDeleting && !isShortened && isSame) return before;
    const { generation } = before.metadata;
    const metadata = {
      ...before.metadata,
      ...(finalizers.length > 0 && { finalizers }),
      ...(generation !== undefined && !wasDeleting && { generation: generation + 1 }),
      ...((!wasDeleting || isShortened) && {
        deletionTimestamp: this.#timestamp(graceSeconds * 1000),
        deletionGracePeriodSeconds: graceSeconds,
      }),
    };
    const after = { ...before, metadata } as Stored;
    return this.#put(path, { before, after, managers, isDryRun: request.isDryRun });
  }

  #entry(path: ObjectPath): Entry {
    const entry = this.#entries.get(pathOf(path));
    if (!entry) throw notFound(path.kind, path.name);
    return entry;
  }

  #put(
    path: ObjectPath,
    {
      before,
      after,
      managers,
      isDryRun = false,
    }: { before: Stored | undefined; after: Stored; managers: Managers; isDryRun?: boolean | undefined },
  ): Stored {
    if (isDryRun) return after;
    const revision = this.#nextRevision();
    const object = { ...after, metadata: { ...after.metadata, resourceVersion: String(revision) } } as Stored;
    shareOwnable(after, object);
    this.#entries.set(pathOf(path), { object, managers });
    this.#record({ revision, at: this.#revisedAt, kind: path.kind, before, after: object, managers });
    return object;
  }

  /** The event of a deletion has the object as it was stored last. */
  #remove(path: ObjectPath, isDryRun = false): Stored {
    const { object: before } = this.#entry(path);
    if (isDryRun) return before;
    const revision = this.#nextRevision();
    const last = { ...before, metadata: { ...before.metadata, resourceVersion: String(revision) } } as Stored;
    this.#entries.delete(pathOf(path));
    this.#record({
      revision,
      at: this.#revisedAt,
      kind: path.kind,
      before,
      after: undefined,
      last,
      managers: new Map(),
    });
    return last;
  }

  #record(change: Revision): void {
    this.#history.push(change);
    for (const listener of this.#listeners) listener(change);
  }

  #timestamp(inMs = 0): string {
    return new Date(this.#options.now() + inMs).toISOString().replace(/\.\d+/, "");
  }
}

const prefixOf = ({ apiVersion, plural }: ServedKind): string => `${apiVersion}/${plural}/`;
const pathOf = ({ kind, namespace, name }: ObjectPath): string => `${prefixOf(kind)}${namespace}/${name}`;

export function refOf(object: Stored | undefined): { readonly namespace: string; readonly name: string } {
  const { namespace = "", name = "" } = object?.metadata ?? {};
  return { namespace, name };
}

function nameFor(metadata: JsonMap, newUid: () => string): string {
  const { name, generateName } = metadata;
  if (typeof name === "string" && name !== "") return name;
  if (typeof generateName === "string" && generateName !== "") return `${generateName}${newUid().slice(-5)}`;
  throw new StatusError(422, "Invalid", "name or generateName is required");
}

export const notFound = (kind: ServedKind, name: string): StatusError =>
  new StatusError(404, "NotFound", `${kind.plural} "${name}" not found`);

const alreadyExists = (kind: ServedKind, name: string): StatusError =>
  new StatusError(409, "AlreadyExists", `${kind.plural} "${name}" already exists`);

const conflict = (kind: ServedKind, name: string, why: string): StatusError =>
  new StatusError(409, "Conflict", `Operation cannot be fulfilled on ${kind.plural} "${name}": ${why}`);

const isReleased = ({ metadata }: Stored): boolean =>
  (metadata.finalizers ?? []).length === 0 && (metadata.deletionGracePeriodSeconds ?? 0) === 0;

function checkFinalizers(kind: ServedKind, before: Stored, after: Stored): void {
  if (before.metadata.deletionTimestamp === undefined) return;
  const known = new Set(before.metadata.finalizers ?? []);
  if ((after.metadata.finalizers ?? []).every((each) => known.has(each))) return;
  throw new StatusError(
    422,
    "Invalid",
    `${kind.kind} "${after.metadata.name}" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted`,
  );
}

function checkPreconditions({ kind, name }: ObjectPath, before: Stored, { uid, resourceVersion }: DeleteRequest): void {
  if (uid !== undefined && uid !== before.metadata.uid) {
    throw conflict(
      kind,
      name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${before.metadata.uid}`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== before.metadata.resourceVersion) {
    throw conflict(kind, name, "Precondition failed: ResourceVersion in precondition is not that of the object");
  }
}

/** Each request with a policy replaces the finalizers of the garbage collector. */
function finalizersFor({ propagationPolicy }: DeleteRequest, { metadata }: Stored): string[] {
  const { finalizers = [] } = metadata;
  if (propagationPolicy === undefined) return finalizers;
  const wanted = { Foreground: foregroundFinalizer, Orphan: orphanFinalizer }[propagationPolicy];
  const others = finalizers.filter((each) => each !== foregroundFinalizer && each !== orphanFinalizer);
  if (wanted === undefined) return others;
  return finalizers.includes(wanted)
    ? finalizers.filter((each) => each === wanted || others.includes(each))
    : [...others, wanted];
}

/** Only pods that a kubelet runs end gracefully. */
function graceFor(kind: ServedKind, object: Stored, { gracePeriodSeconds }: DeleteRequest): number {
  const { spec, status } = object as { spec?: JsonMap; status?: JsonMap };
  if (kind.kind !== "Pod" || spec?.["nodeName"] === undefined) return 0;
  if (status?.["phase"] === "Failed" || status?.["phase"] === "Succeeded") return 0;
  return gracePeriodSeconds ?? (spec["terminationGracePeriodSeconds"] as number | undefined) ?? 30;
}

function withStatus(before: Stored, { status }: JsonMap): Stored {
  const { status: _, ...rest } = before;
  return { ...rest, ...(status !== undefined && { status }) };
}

/** What a generation counts: everything but the metadata and the status. */
function desired(object: Stored): JsonMap {
  const { metadata: _, status: __, ...rest } = object;
  return rest;
}

function normalized(kind: ServedKind, object: Stored): Stored {
  const metadata: Record<string, unknown> = { ...object.metadata };
  for (const key of ["finalizers", "ownerReferences", "labels", "annotations"]) {
    const value = metadata[key];
    const isEmpty = Array.isArray(value) ? value.length === 0 : isMap(value) && Object.keys(value).length === 0;
    if (isEmpty || value === null) delete metadata[key];
  }
  const { stringData, ...rest } = object;
  if (kind.kind !== "Secret" || !isMap(stringData)) {
    const typed = kind.kind === "Secret" && object["type"] === undefined ? { type: "Opaque" } : {};
    return { ...object, ...typed, metadata };
  }
  const encoded = Object.entries(stringData).map(
    ([key, text]) => [key, Buffer.from(text as string).toString("base64")] as const,
  );
  const given = isMap(object["data"]) ? object["data"] : {};
  return { type: "Opaque", ...rest, data: { ...given, ...Object.fromEntries<string>(encoded) }, metadata };
}

const texts = new WeakMap<object, string>();

/** The JSON of a stored object, which many watches and lists send. */
export function textOf(object: object): string {
  const text = texts.get(object) ?? JSON.stringify(object);
  texts.set(object, text);
  return text;
}
