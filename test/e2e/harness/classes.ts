/** WorkspaceClasses are cluster-scoped: each applies only to the namespace of its scene, and is deleted with the scene. */
import type { WorkspaceClass } from "@pko/api";
import { isNotFound } from "@pko/kube";
import { workspaceClasses } from "@pko/operator/kinds";

import type { useScene } from "./scene.ts";

export async function createClass(
  scene: ReturnType<typeof useScene>,
  spec: Omit<NonNullable<WorkspaceClass["spec"]>, "namespaceSelector">,
): Promise<void> {
  const name = `${scene.namespace}-${crypto.randomUUID().slice(0, 8)}`;
  const { apiVersion, kind } = workspaceClasses;
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": scene.namespace } };
  await scene.client.create(workspaceClasses, {
    apiVersion,
    kind,
    metadata: { name },
    spec: { namespaceSelector, ...spec },
  });
  scene.defer(async () => {
    await scene.client.delete(workspaceClasses, { name }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  });
}
