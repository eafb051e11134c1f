/**
 * Writes and deletes of objects by name that touch only objects of the given owner. Each reads the object first and is
 * conditional on the version it read: an object that was replaced in between is not touched.
 */
import type { ApplyBody, ApplyOptions, Client, DeleteOptions, PatchOptions } from "./client.ts";
import { isConflict, isNotFound } from "./errors.ts";
import { classifyOwnership, type ObjectVersion, type Occupied, type Owner, type Ownership } from "./ownership.ts";
import { metadataOf, type KubeObject, type ObjectRef, type Resource } from "../resource.ts";

/** The owner on whose behalf an object is written. */
export interface OwnedTarget {
  readonly client: Client;
  readonly owner: Owner;
  /** The expected UID: another object with the same name is not touched. */
  readonly uid?: string;
  readonly signal?: AbortSignal;
}

export type OwnedWrite<T> =
  | { readonly kind: "written"; readonly object: T }
  | { readonly kind: "absent" }
  /** The object has another UID than expected, or changed on every attempt: read it again later. */
  | { readonly kind: "changed" }
  | Occupied;

type OwnedApply = Omit<ApplyOptions, "signal" | "subresource" | "dryRun"> & {
  /** Whether to create an object that does not exist; true by default. */
  readonly create?: boolean;
  /**
   * What was found under the name before, if that is known: it is not read first. The write has no effect if that is outdated; the
   * object is read then.
   */
  readonly found?: Found;
};

/** Without an object, nothing was found. */
interface Found {
  readonly object?: KubeObject | undefined;
}

export async function applyOwned<T extends KubeObject>(
  target: OwnedTarget,
  { resource, body }: { readonly resource: Resource<T>; readonly body: ApplyBody<T> },
  { create = true, found, ...options }: OwnedApply,
): Promise<OwnedWrite<T>> {
  const { client, signal } = target;
  const { name, namespace } = body.metadata;
  const ref = { name, ...(namespace !== undefined && { namespace }) };
  return await attempt(target, { resource, ref, create, found }, async (version) => {
    const metadata = { ...body.metadata, ...(version ?? { resourceVersion: impossibleVersion }) };
    return await client.apply(resource, Object.assign({}, body, { metadata }), {
      ...options,
      ...(signal && { signal }),
    });
  });
}

/**
 * No object ever has this version: an apply with it creates the object, and fails with a conflict if the object exists. A
 * POST would also do that, but record the fields as an "Update" of the field manager, and later applies could not remove them.
 */
const impossibleVersion = "1";

interface MergeBody {
  readonly metadata?: object;
  readonly [field: string]: unknown;
}

/** A merge patch; never creates. */
export async function patchOwned<T extends KubeObject>(
  target: OwnedTarget,
  { resource, ref }: { readonly resource: Resource<T>; readonly ref: ObjectRef },
  { body, fieldManager }: { readonly body: MergeBody } & Pick<PatchOptions, "fieldManager">,
): Promise<OwnedWrite<T>> {
  const { client, signal } = target;
  return await attempt(target, { resource, ref, create: false }, async (version) => {
    const patch = { type: "merge", body: { ...body, metadata: { ...body.metadata, ...version } } } as const;
    return await client.patch(resource, ref, {
      patch,
      ...(fieldManager !== undefined && { fieldManager }),
      ...(signal && { signal }),
    });
  });
}

/** "written" means that the API server accepted the deletion. */
export async function deleteOwned(
  target: OwnedTarget,
  { resource, ref }: { readonly resource: Resource; readonly ref: ObjectRef },
  options: Pick<DeleteOptions, "propagationPolicy" | "gracePeriodSeconds"> = {},
): Promise<OwnedWrite<void>> {
  const { client, signal } = target;
  return await attempt(target, { resource, ref, create: false }, async (version) => {
    await client.delete(resource, ref, { ...options, ...version, ...(signal && { signal }) });
  });
}

/** The ownership of the object that the API server has under a name. Reads only metadata. */
export async function findOwnership(
  { client, owner, signal }: Pick<OwnedTarget, "client" | "owner" | "signal">,
  { resource, ref }: { readonly resource: Resource; readonly ref: ObjectRef },
): Promise<Ownership> {
  const found = await client.find(metadataOf(resource), ref, signal ? { signal } : {});
  // A metadata-only response has the kind PartialObjectMetadata.
  return classifyOwnership(found && { ...found, kind: resource.kind }, owner);
}

/** Several attempts, because other controllers may write the object's status at any time. */
const attempts = 4;

interface Destination {
  readonly resource: Resource;
  readonly ref: ObjectRef;
  readonly create: boolean;
  readonly found?: Found | undefined;
}

async function ownershipNow(
  target: OwnedTarget,
  { found, ...destination }: Omit<Destination, "create">,
): Promise<Ownership> {
  return found ? classifyOwnership(found.object, target.owner) : await findOwnership(target, destination);
}

async function attempt<T>(
  target: OwnedTarget,
  { resource, ref, create, found }: Destination,
  write: (version: ObjectVersion | undefined) => Promise<T>,
): Promise<OwnedWrite<T>> {
  for (let count = 0; count < attempts; count++) {
    const ownership = await ownershipNow(target, { resource, ref, found: count === 0 ? found : undefined });
    if (ownership.kind === "former" || ownership.kind === "foreign") return ownership;
    // We always set a controller reference: this is another party's object that is only garbage-collected with the owner.
    if (ownership.kind === "dependent") return { kind: "foreign", occupant: ownership.occupant };
    if (ownership.kind === "absent" && !create) return ownership;
    const version = ownership.kind === "absent" ? undefined : ownership.version;
    if (target.uid !== undefined && version && version.uid !== target.uid) return { kind: "changed" };
    try {
      return { kind: "written", object: await write(version) };
    } catch (error) {
      if (!isConflict(error) && !(version && isNotFound(error))) throw error;
    }
  }
  return { kind: "changed" };
}
