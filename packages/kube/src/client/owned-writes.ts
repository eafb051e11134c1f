/**
 * Writes and deletes of objects by name that touch only what belongs to the given owner. Each reads the object first, and
 * is conditional on what was read: an object that is swapped in between is not touched.
 */
import type { ApplyBody, ApplyOptions, Client, DeleteOptions, PatchOptions } from "./client.ts";
import { isConflict, isNotFound } from "./errors.ts";
import { judgeOwnership, type ObjectVersion, type Occupied, type Owner, type Ownership } from "./ownership.ts";
import { metadataOf, type KubeObject, type ObjectRef, type Resource } from "../resource.ts";

/** What is to be written, and on whose behalf. */
export interface OwnedTarget {
  readonly client: Client;
  readonly owner: Owner;
  /** The object that was meant: another of the same name is left alone. */
  readonly uid?: string;
  readonly signal?: AbortSignal;
}

export type OwnedWrite<T> =
  | { readonly kind: "written"; readonly object: T }
  | { readonly kind: "absent" }
  /** It is not the object that was meant, or did not stay the same for long enough: read it again later. */
  | { readonly kind: "changed" }
  | Occupied;

type OwnedApply = Omit<ApplyOptions, "signal" | "subresource" | "dryRun"> & {
  /** Whether an object that does not exist is created, which is the default. */
  readonly create?: boolean;
};

export async function applyOwned<T extends KubeObject>(
  target: OwnedTarget,
  { resource, body }: { readonly resource: Resource<T>; readonly body: ApplyBody<T> },
  { create = true, ...options }: OwnedApply,
): Promise<OwnedWrite<T>> {
  const { client, signal } = target;
  const { name, namespace } = body.metadata;
  const ref = { name, ...(namespace !== undefined && { namespace }) };
  return await attempt(target, { resource, ref, create }, async (version) => {
    const metadata = { ...body.metadata, ...(version ?? { resourceVersion: neverUsed }) };
    return await client.apply(resource, Object.assign({}, body, { metadata }), {
      ...options,
      ...(signal && { signal }),
    });
  });
}

/**
 * No object has this version. With it an apply creates, and fails with a conflict where an object of the name exists. A POST
 * would do so as well, but leave the fields to an "Update" of the field manager, and later applies could not remove them.
 */
const neverUsed = "1";

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

/** "written" means that its deletion has begun. */
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

/** What the API server has under a name, judged. Reads no more than metadata. */
export async function findOwnership(
  { client, owner, signal }: Pick<OwnedTarget, "client" | "owner" | "signal">,
  { resource, ref }: { readonly resource: Resource; readonly ref: ObjectRef },
): Promise<Ownership> {
  const found = await client.find(metadataOf(resource), ref, signal ? { signal } : {});
  // A response with metadata alone has another kind.
  return judgeOwnership(found && { ...found, kind: resource.kind }, owner);
}

/** Controllers of other kinds write the status of ours at any time. */
const attempts = 4;

interface Destination {
  readonly resource: Resource;
  readonly ref: ObjectRef;
  readonly create: boolean;
}

async function attempt<T>(
  target: OwnedTarget,
  { resource, ref, create }: Destination,
  write: (version: ObjectVersion | undefined) => Promise<T>,
): Promise<OwnedWrite<T>> {
  for (let count = 0; count < attempts; count++) {
    const ownership = await findOwnership(target, { resource, ref });
    if (ownership.kind === "former" || ownership.kind === "foreign") return ownership;
    // No object that we write is marked like this: somebody wants theirs to be deleted with the owner, no more.
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
