/** Where workspaces have their pods: how many run, how many are scaled to zero, and which wait for theirs. */
import { podNameOf, statefulSetNameOf, type Workspace } from "@pko/api";
import { refKey, type ApiObject, type Registry, type Store } from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import { isConditionTrue } from "./shared/objects/conditions.ts";

interface Stores {
  readonly workspaces: Pick<Store<Workspace>, "list">;
  readonly statefulSets: Pick<Store<ApiObject<StatefulSet>>, "get">;
  readonly pods: Pick<Store<ApiObject<Pod>>, "get">;
  /** Whether its pod was deleted before it started, because others waited for its slot. It is created again later. */
  readonly hasNotStarted: (statefulSet: ApiObject<StatefulSet>) => boolean;
}

const states = ["running", "pending", "scaledToZero"] as const;
type State = (typeof states)[number];

export function exposeWorkspaces(registry: Registry, stores: Stores): void {
  const counts = registry.gauge({
    name: "workspaces",
    help: "Workspaces by state: their pod is running, it is pending or missing, or they are scaled to zero.",
    labels: ["state"],
  });
  const pending = registry.gauge({
    name: "workspaces_pod_pending",
    help: "1 for a Workspace that needs a pod whose containers have not started, or that does not exist.",
    labels: ["namespace", "name"],
    // An alert must not miss a Workspace.
    maxSeries: Infinity,
  });
  registry.onCollect(() => {
    pending.clear();
    const found = new Map<State, number>(states.map((state) => [state, 0]));
    for (const workspace of stores.workspaces.list()) {
      const ref = { namespace: workspace.metadata.namespace ?? "", name: workspace.metadata.name ?? "" };
      const state = stateOf(workspace, ref, stores);
      found.set(state, (found.get(state) ?? 0) + 1);
      if (state === "pending") pending.set(ref, 1);
    }
    for (const [state, count] of found) counts.set({ state }, count);
  });
}

interface WorkspaceName {
  readonly namespace: string;
  readonly name: string;
}

/** Only from the stores, so that it is the same in every replica. */
function stateOf(workspace: Workspace, { namespace, name }: WorkspaceName, stores: Stores): State {
  const { statefulSets, pods, hasNotStarted } = stores;
  const statefulSet = statefulSets.get(refKey({ namespace, name: statefulSetNameOf(name) }));
  // Otherwise, the alert for such a pod would never fire: it has five minutes at a time. What is stalled has another alert.
  if (statefulSet && hasNotStarted(statefulSet) && !isConditionTrue(workspace, "Stalled")) return "pending";
  if ((statefulSet?.spec?.replicas ?? 0) === 0) return "scaledToZero";
  const pod = pods.get(refKey({ namespace, name: podNameOf(name) }));
  return (pod?.status?.phase ?? "Pending") === "Pending" ? "pending" : "running";
}
