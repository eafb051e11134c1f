/** All Stacks that the user may see. Whoever may not list all namespaces chooses one. */
import type { Stack } from "@pko/api/browser";

import { isObjectName } from "../lib/routes.ts";
import { hasUrlToken } from "./api.ts";
import { query, route } from "./location.ts";
import { prefetch, useWatch, type Watched } from "./watches.ts";

export interface Fleet {
  readonly stacks: Watched<Stack>;
  /** The user may not list all namespaces, and has to choose one. */
  readonly needsNamespace: boolean;
  /** The namespace that was chosen; empty for all. */
  readonly namespace: string;
}

export function useFleet(): Fleet {
  const wanted = query.value.get("namespace") ?? "";
  const namespace = isObjectName(wanted) ? wanted : "";
  const all = useWatch<Stack>("stacks", {}).value;
  const isDenied = all.state.kind === "denied";
  const one = useWatch<Stack>("stacks", isDenied && namespace !== "" ? { namespace } : undefined).value;
  return {
    stacks: isDenied && namespace !== "" ? one : all,
    needsNamespace: isDenied && namespace === "",
    namespace,
  };
}

/** Of a user who has a session, the Stacks are requested together with the session, not after it. */
export function prefetchFleet(): void {
  if (route.peek().page === "fleet" && !hasUrlToken()) prefetch("stacks", {});
}

/** Links between views keep the namespace that a user without permission for all had to choose. */
export function withNamespace(path: string, namespace: string): string {
  return namespace === "" ? path : `${path}?namespace=${encodeURIComponent(namespace)}`;
}
