/** Which idle workspaces are scaled to zero early, because other pods are unschedulable. Pure. */
import { keyOf, type Key } from "@pko/kube";

import { isUnschedulable } from "../pod/explain-pod.ts";
import { hasWork, idleSince, isFailed, isPrepared, wokenUntil, type Candidate, type WorkspaceView } from "../view.ts";

/** A pod that has just become ready is about to get its Update: it makes no room for others. */
export const leastIdleMs = 5000;

/** A pod that fits on no node at all must not shorten the idle timeout of other workspaces for longer than this. */
const longestWaitMs = 10 * 60_000;

type RoomView = Pick<WorkspaceView, "unschedulable" | "room" | "now">;

/** How many pods room would help: it helps against exhausted resources, not against taints or selectors. */
export function podsWantingRoom({ unschedulable, now }: Omit<RoomView, "room">): number {
  return unschedulable.filter(
    ({ message, createdAt }) => /Insufficient|Too many pods/.test(message) && now - createdAt <= longestWaitMs,
  ).length;
}

/** As many as pods want room, those that have been idle for longest. */
export function preempted(view: RoomView): Key[] {
  const { room, now } = view;
  if (!room) return [];
  return room.candidates
    .filter(({ workspace }) => wokenUntil({ workspace, now }) === undefined)
    .map((candidate) => ({ key: keyOf(candidate.workspace), since: idleWithPodSince(candidate) ?? Infinity }))
    .filter(({ since }) => now - since >= leastIdleMs)
    .toSorted((a, b) => a.since - b.since)
    .slice(0, Math.max(0, podsWantingRoom(view) - room.terminatingPods))
    .map(({ key }) => key);
}

/** Undefined for a workspace that keeps its pod, or whose pod takes no room. */
function idleWithPodSince({ workspace, pod, updates, idleTimeoutMs, losesState }: Candidate): number | undefined {
  if (pod.metadata.deletionTimestamp || isUnschedulable(pod)) return undefined;
  if (idleTimeoutMs === 0 || losesState || hasWork(updates)) return undefined;
  return isPrepared(workspace) || isFailed(workspace) ? idleSince(workspace, updates) : undefined;
}
