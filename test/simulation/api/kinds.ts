/** The kinds that the simulated API server serves. */
import {
  approvals,
  notifications,
  programs,
  receivers,
  stacks,
  updateRecords,
  updates,
  workspaceClasses,
  workspaces,
} from "@pko/operator";
import { builtin, type ResourceNames } from "@pko/kube";

import type { ServedKind } from "./storage.ts";

const custom = [
  stacks,
  programs,
  workspaces,
  updates,
  approvals,
  receivers,
  notifications,
  workspaceClasses,
  updateRecords,
].map((kind) => served(kind, { hasStatus: true, hasGeneration: true }));

const withoutGeneration = new Set([
  "configmaps",
  "secrets",
  "services",
  "leases",
  "events",
  "namespaces",
  "persistentvolumeclaims",
  "serviceaccounts",
]);
const withStatus = new Set(["pods", "services", "statefulsets", "namespaces", "persistentvolumeclaims", "deployments"]);

const ofCore = Object.values(builtin).map((kind) =>
  served(kind, { hasStatus: withStatus.has(kind.plural), hasGeneration: !withoutGeneration.has(kind.plural) }),
);

function served(
  { apiVersion, kind, plural, namespaced }: ResourceNames,
  has: Pick<ServedKind, "hasStatus" | "hasGeneration">,
): ServedKind {
  return { apiVersion, kind, plural, namespaced, ...has };
}

export const servedKinds: readonly ServedKind[] = [...custom, ...ofCore];

export function servedKind({ apiVersion, plural }: Pick<ResourceNames, "apiVersion" | "plural">): ServedKind {
  const found = servedKinds.find((kind) => kind.apiVersion === apiVersion && kind.plural === plural);
  if (!found) throw new Error(`the simulated API server does not serve ${apiVersion} ${plural}`);
  return found;
}
