/** Pods that no node can take, and Workspaces that could make room for them. */
import type { Workspace } from "@pko/api";
import { keyOf, type ApiObject } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { isUnschedulable, schedulingCondition } from "../pod/explain-pod.ts";
import type { Candidate, Room, UnschedulablePod } from "../view.ts";
import type { WorkspaceWorld } from "./index.ts";
import { findPod } from "./pod.ts";
import { observeUpdates } from "./updates.ts";

const unschedulableIndex = "workspace/unschedulable";

export const podIndexers = {
  [unschedulableIndex]: (pod: ApiObject<Pod>): string[] => (isUnschedulable(pod) ? ["yes"] : []),
};

export function observeUnschedulable({ pods }: Pick<WorkspaceWorld, "pods">): UnschedulablePod[] {
  return pods.byIndex(unschedulableIndex, "yes").map((pod) => ({
    message: schedulingCondition(pod)?.message ?? "",
    createdAt: parseTimestamp(pod.metadata.creationTimestamp) ?? 0,
  }));
}

/** Reads all Workspaces, so only a step does it, when a rule needs it. */
export function observeRoom(world: WorkspaceWorld): Room {
  return {
    terminatingPods: world.pods.list().filter(({ metadata }) => metadata.deletionTimestamp !== undefined).length,
    candidates: world.workspaces.list().flatMap((workspace) => candidateFor(world, workspace) ?? []),
  };
}

function candidateFor(world: WorkspaceWorld, workspace: Workspace): Candidate | undefined {
  const pod = findPod(world, workspace);
  if (!pod) return undefined;
  const { idleTimeoutSeconds } = workspace.spec ?? {};
  return {
    workspace,
    pod,
    updates: observeUpdates(world, workspace, pod),
    idleTimeoutMs: idleTimeoutSeconds === undefined ? world.settings.idleTimeoutMs : idleTimeoutSeconds * 1000,
    losesState: world.memory.get(keyOf(workspace))?.losesState === true,
  };
}
