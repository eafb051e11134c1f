/** Which idle workspaces are scaled to zero early, because other pods are unschedulable. Pure. */
import { keyOf, type Key, type ApiObject } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { isUnschedulable, schedulingCondition } from "../pod/explain-pod.ts";
import { hasWork, idleSince, isFailed, isPrepared, type Candidate, type WorkspaceView } from "../view.ts";

/** A pod that has just become ready is about to get its Update: it makes no room for others. */
export const leastIdleMs = 5000;

/** A pod that fits on no node at all must not shorten the idle timeout of other workspaces for longer than this. */
const longestWaitMs = 10 * 60_000;

/** Room helps against exhausted resources, not against taints or selectors. */
export function wantsRoom(pod: ApiObject<Pod>, now: number): boolean {
  const message = schedulingCondition(pod)?.message ?? "";
  const age = now - Date.parse(pod.metadata.creationTimestamp ?? "");
  return /Insufficient|Too many pods/.test(message) && !(age > longestWaitMs);
}

/** As many as pods wait for room, those that have been idle for longest. */
export function preempted({ shortage, now }: Pick<WorkspaceView, "shortage" | "now">): Key[] {
  if (!shortage) return [];
  const { waitingPods, terminatingPods, candidates } = shortage;
  return candidates
    .map((candidate) => ({ key: keyOf(candidate.workspace), since: idleWithPodSince(candidate) ?? Infinity }))
    .filter(({ since }) => now - since >= leastIdleMs)
    .toSorted((a, b) => a.since - b.since)
    .slice(0, Math.max(0, waitingPods - terminatingPods))
    .map(({ key }) => key);
}

/** Undefined for a workspace that keeps its pod, or whose pod takes no room. */
function idleWithPodSince({ workspace, pod, updates, idleTimeoutMs, losesState }: Candidate): number | undefined {
  if (pod.metadata.deletionTimestamp || isUnschedulable(pod)) return undefined;
  if (idleTimeoutMs === 0 || losesState || hasWork(updates)) return undefined;
  return isPrepared(workspace) || isFailed(workspace) ? idleSince(workspace, updates) : undefined;
}
