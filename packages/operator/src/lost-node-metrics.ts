/** The gauge behind the alert for pods whose nodes may be lost. */
import type { Update, Workspace } from "@pko/api";
import { keyOf, type Key, type KubeObject, type Registry, type Store } from "@pko/kube";

import { findCondition } from "./shared/objects/conditions.ts";
import { workspaceKeyOf } from "./shared/updates.ts";

interface Stores {
  readonly updates: Pick<Store<Update>, "list">;
  readonly workspaces: Pick<Store<Workspace>, "list">;
}

/** Returns a function that stops it. A Workspace reports a pod without a run, an Update a pod with a run. */
export function exposeLostNodes(registry: Registry, { updates, workspaces }: Stores): () => void {
  const gauge = registry.gauge({
    name: "workspaces_node_lost",
    help: "1 for a Workspace whose pod does not respond because its node may be lost, until a user acts.",
    labels: ["namespace", "name"],
    maxSeries: Infinity,
  });
  return registry.onCollect(() => {
    gauge.clear();
    const lost = new Set<Key>([
      ...workspaces.list().filter(isOnLostNode).map(keyOf),
      ...updates.list().filter(isOnLostNode).map(workspaceKeyOf),
    ]);
    for (const key of lost) {
      const [namespace = "", name = ""] = key.split("/");
      gauge.set({ namespace, name }, 1);
    }
  });
}

type Conditioned = KubeObject & Pick<Update | Workspace, "status">;

function isOnLostNode(object: Conditioned): boolean {
  const stalled = findCondition(object, "Stalled");
  return stalled?.status === "True" && stalled.reason === "NodeLost";
}
