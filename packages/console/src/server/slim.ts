/** Objects without secrets, and without what no page shows: lists of 10,000 Stacks are sent to every browser. Pure. */
import type { KubeObject } from "@pko/kube";

import type { WatchSubscription } from "../shared/contract.ts";
import { maskSecrets } from "./mask.ts";

/**
 * A page about one object shows all of it except its managed fields, which are a third of many objects. Pages that list Stacks
 * show neither their annotations and labels, nor configuration, outputs and drifted resources.
 */
export function slim(object: KubeObject, { resource, name }: WatchSubscription): object {
  const { managedFields: _, ...metadata } = object.metadata;
  const shown = maskSecrets({ ...object, metadata });
  if (resource === "pods") return withoutDetails(shown);
  const isListed = resource === "stacks" && name === undefined;
  return isListed ? listed(shown) : shown;
}

/** A pod can have secrets in plain text in its environment and its arguments: only its images and its status are shown. */
function withoutDetails({ metadata, spec, status, ...object }: Listed): object {
  const { containers = [] } = (spec ?? {}) as { readonly containers?: readonly { name?: string; image?: string }[] };
  return {
    ...object,
    metadata: without(metadata, ["annotations"]),
    spec: { containers: containers.map((each) => ({ name: each.name, image: each.image })) },
    ...(status && { status }),
  };
}

interface Listed {
  readonly metadata: object;
  readonly spec?: object;
  readonly status?: object;
}

function listed({ metadata, spec, status, ...object }: Listed): object {
  return {
    ...object,
    metadata: without(metadata, ["annotations", "labels", "finalizers", "ownerReferences"]),
    ...(spec && { spec: without(spec, ["config", "secrets"]) }),
    ...(status && { status: without(status, ["outputs", "drift"]) }),
  };
}

function without(object: object, names: readonly string[]): object {
  const rest: Record<string, unknown> = { ...object };
  for (const name of names) delete rest[name];
  return rest;
}
