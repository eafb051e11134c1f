/** WorkspaceClasses and the labels of namespaces are cluster-scoped: in an installation without a ClusterRole, classes are off. */
import { workspaceClassKind } from "@pko/api";
import {
  builtin,
  mayClient,
  metadataOf,
  reflector,
  type Client,
  type KubeObject,
  type Logger,
  type ReflectorOptions,
} from "@pko/kube";

import { workspaceClasses } from "../kinds.ts";
import type { ClassReflectors } from "../shared/workspace-classes.ts";

const needed = [
  { group: "auto.pulumi.com", resource: workspaceClassKind.plural },
  { group: "", resource: builtin.namespaces.plural },
] as const;

/** Undefined where the operator may not watch classes and namespaces. Checked once: new permissions need a restart. */
export async function classReflectors(
  client: Client,
  options: Pick<ReflectorOptions<KubeObject>, "onError" | "timing" | "clock">,
  log: Logger,
): Promise<ClassReflectors | undefined> {
  const missing = await missingPermissions(client);
  if (missing.length > 0) {
    log.warn("WorkspaceClasses are off, because the operator lacks permissions in the whole cluster", { missing });
    return undefined;
  }
  return {
    classes: reflector(client, workspaceClasses, options),
    namespaces: reflector(client, metadataOf(builtin.namespaces), options),
  };
}

async function missingPermissions(client: Client): Promise<string[]> {
  const wanted = needed.flatMap(({ group, resource: plural }) =>
    ["list", "watch"].map((verb) => ({ verb, group, resource: plural })),
  );
  const allowed = await Promise.all(wanted.map((attributes) => mayClient(client, attributes)));
  return wanted.flatMap(({ verb, resource: plural }, index) => (allowed[index] ? [] : [`${verb} ${plural}`]));
}
