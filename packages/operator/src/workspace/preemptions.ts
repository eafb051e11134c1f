/**
 * Which idle workspaces make room for pods that no node can take: computed from the stores of all Workspaces, for all of them
 * together, and read by each as a fact.
 */
import type { Workspace } from "@pko/api";
import { keyOf, type ApiObject } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { parseTimestamp } from "../shared/parse-timestamp.ts";
import { workspaceOfPod } from "../shared/pods/workspace-pod.ts";
import { isAttemptInProgress } from "./memory.ts";
import { makesRoom, planPreemptions, wantsRoom, type UnschedulablePod } from "./idle/preemption.ts";
import { isUnschedulable, schedulingCondition } from "./pod/explain-pod.ts";
import type { Candidate, Preemptions, Victims } from "./view.ts";
import type { WorkspaceStores } from "./observe/index.ts";
import { findPod } from "./observe/pod.ts";
import { observeUpdates } from "./observe/updates.ts";

const unschedulableIndex = "workspace/unschedulable";

export const podIndexers = {
  [unschedulableIndex]: (pod: ApiObject<Pod>): string[] => (isUnschedulable(pod) ? ["yes"] : []),
};

/** How long a plan is used. It needs all Workspaces, and while pods are unschedulable, every pass of each Workspace needs it. */
const validMs = 1000;

interface Moment {
  readonly now: number;
  readonly monotonic: number;
}

export type PreemptionReader = (moment: Moment) => Preemptions;

type Plan = Omit<Preemptions, "renewedAt">;

export function preemptionReader(stores: WorkspaceStores): PreemptionReader {
  let made: { readonly plan: Plan; readonly at: number } | undefined;
  return ({ now, monotonic }) => {
    if (!made || monotonic - made.at >= validMs) made = { plan: planAt(stores, now), at: monotonic };
    return { ...made.plan, renewedAt: now + (made.at + validMs - monotonic) };
  };
}

function planAt(stores: WorkspaceStores, now: number): Plan {
  const unschedulable = unschedulablePods(stores);
  const planned = new Set(unschedulable.map(({ workspace }) => workspace));
  return { ...victimsFor(stores, unschedulable, now), planned };
}

const noVictims: Victims = { victims: new Set(), victimOf: new Map() };

function victimsFor(stores: WorkspaceStores, unschedulable: readonly UnschedulablePod[], now: number): Victims {
  if (!unschedulable.some((pod) => wantsRoom(pod, now))) return noVictims;
  return planPreemptions({
    now,
    unschedulable,
    terminatingPods: stores.pods.list().filter((pod) => makesRoom(pod, now)).length,
    candidates: stores.workspaces.list().flatMap((workspace) => candidateFor(stores, workspace) ?? []),
  });
}

function unschedulablePods({ pods }: Pick<WorkspaceStores, "pods">): UnschedulablePod[] {
  return pods.byIndex(unschedulableIndex, "yes").flatMap((pod) => {
    const workspace = workspaceOfPod(pod);
    const message = schedulingCondition(pod)?.message ?? "";
    const createdAt = parseTimestamp(pod.metadata.creationTimestamp) ?? 0;
    return workspace === undefined ? [] : [{ workspace, message, createdAt }];
  });
}

function candidateFor(stores: WorkspaceStores, workspace: Workspace): Candidate | undefined {
  const pod = findPod(stores, workspace);
  const memory = stores.memory.get(keyOf(workspace));
  // Its status still shows that the last attempt failed, but it needs its pod.
  if (!pod || isAttemptInProgress(memory)) return undefined;
  const { idleTimeoutSeconds } = workspace.spec ?? {};
  return {
    workspace,
    pod,
    updates: observeUpdates(stores, workspace, pod),
    idleTimeoutMs: idleTimeoutSeconds === undefined ? stores.settings.idleTimeoutMs : idleTimeoutSeconds * 1000,
    losesState: memory?.losesState === true,
  };
}
