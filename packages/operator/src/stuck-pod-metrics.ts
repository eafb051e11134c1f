/** The gauges behind the alerts for pods that a person has to remove. */
import type { Update, UpdateStalledReason, Workspace } from "@pko/api";
import { keyOf, type Key, type KubeObject, type Registry, type Store } from "@pko/kube";

import { findCondition } from "./shared/objects/conditions.ts";
import { workspaceKeyOf } from "./shared/updates.ts";

interface Stores {
  /** Those at rest are not stuck. */
  readonly updates: Pick<Store<Update>, "active">;
  readonly workspaces: Pick<Store<Workspace>, "list">;
}

/** By Workspace, because not every Update belongs to a Stack. A Workspace reports a pod without a run, an Update a pod with a run. */
export function exposeStuckPods(registry: Registry, { updates, workspaces }: Stores): void {
  expose(registry, {
    name: "workspaces_node_lost",
    help: "1 for a Workspace whose pod does not respond because its node may be lost, until a user acts.",
    keys: () => [
      ...workspaces.list().filter(isStalledBy("NodeLost")).map(keyOf),
      ...updates.active().filter(isStalledBy("NodeLost")).map(workspaceKeyOf),
    ],
  });
  expose(registry, {
    name: "workspaces_update_not_stopped",
    help: "1 for a Workspace with an update that exceeded its timeout and could not be stopped, until a user acts.",
    keys: () => updates.active().filter(isStalledBy("NotStopped")).map(workspaceKeyOf),
  });
}

interface Gauge {
  readonly name: string;
  readonly help: string;
  readonly keys: () => readonly Key[];
}

function expose(registry: Registry, { name, help, keys }: Gauge): void {
  const gauge = registry.gauge({ name, help, labels: ["namespace", "name"], maxSeries: Infinity });
  registry.onCollect(() => {
    gauge.clear();
    for (const key of new Set(keys())) {
      const [namespace = "", workspace = ""] = key.split("/");
      gauge.set({ namespace, name: workspace }, 1);
    }
  });
}

type Conditioned = KubeObject & Pick<Update | Workspace, "status">;

function isStalledBy(reason: UpdateStalledReason): (object: Conditioned) => boolean {
  return (object) => {
    const stalled = findCondition(object, "Stalled");
    return stalled?.status === "True" && stalled.reason === reason;
  };
}
