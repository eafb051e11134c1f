/** Which idle workspaces are scaled to zero early, because other pods are unschedulable. Pure. */
import { keyOf, namespaceOf, type ApiObject, type Key } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { clockSkewMs, parseTimestamp } from "../../shared/parse-timestamp.ts";
import { isUnschedulable } from "../pod/explain-pod.ts";
import { hasWork, idleSince, isFailed, isPrepared, wokenUntil, type Candidate, type Victims } from "../view.ts";

/** A pod that has just become ready is about to get its Update: it makes no room for others. */
export const leastIdleMs = 5000;

/** A pod that fits on no node at all must not shorten the idle timeout of other workspaces for longer than this. */
const longestWaitMs = 10 * 60_000;

/** A pod of any Workspace that no node can take. */
export interface UnschedulablePod {
  readonly workspace: Key;
  /** Of the scheduler. */
  readonly message: string;
  readonly createdAt: number;
}

/** Which pods want and make room, and which Workspaces could. */
export interface Room {
  readonly now: number;
  readonly unschedulable: readonly UnschedulablePod[];
  readonly terminatingPods: number;
  readonly candidates: readonly Candidate[];
}

/** Room helps against exhausted resources, not against taints or selectors. */
export const wantsRoom = ({ message, createdAt }: UnschedulablePod, now: number): boolean =>
  /Insufficient|Too many pods/.test(message) && now - createdAt <= longestWaitMs;

/** A pod whose run is ending, or whose node is lost, terminates for longer than this: others must not wait for its room. */
const terminationMs = 60_000;

/** Whether its room is free in a moment. A pod that is on no node occupies none. */
export function makesRoom({ metadata, spec }: ApiObject<Pod>, now: number): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
  const endsAt = parseTimestamp(deletionTimestamp);
  // Kubernetes adds the grace period to the time of the request.
  const requestedAt = endsAt === undefined ? -Infinity : endsAt - deletionGracePeriodSeconds * 1000;
  return spec?.nodeName !== undefined && now - requestedAt < terminationMs;
}

/**
 * For each pod that wants room, the workspace of its namespace that has been idle for longest; or one of another namespace, if
 * its own has none left. Pods that are terminating make room already.
 */
export function planPreemptions(room: Room): Victims {
  const wanting = room.unschedulable
    .filter((pod) => wantsRoom(pod, room.now))
    .toSorted((a, b) => a.createdAt - b.createdAt)
    .slice(room.terminatingPods);
  const idle = idleWorkspaces(room);
  const byNamespace = Map.groupBy(idle, namespaceOf);
  const victims = new Map<Key, Key>();
  for (const { workspace } of wanting) {
    const own = byNamespace.get(namespaceOf(workspace))?.shift();
    if (own !== undefined) victims.set(workspace, own);
  }
  const taken = new Set(victims.values());
  const others = idle.filter((key) => !taken.has(key));
  for (const { workspace } of wanting) {
    const other = victims.has(workspace) ? undefined : others.shift();
    if (other !== undefined) victims.set(workspace, other);
  }
  return { victimOf: victims, victims: new Set(victims.values()) };
}

/** Those that have been idle for longest first. */
function idleWorkspaces({ candidates, now }: Room): Key[] {
  return candidates
    .filter(({ workspace }) => wokenUntil({ workspace, now }) === undefined)
    .map((candidate) => ({ key: keyOf(candidate.workspace), since: idleWithPodSince(candidate, now) ?? Infinity }))
    .filter(({ since }) => now - since >= leastIdleMs)
    .toSorted((a, b) => a.since - b.since)
    .map(({ key }) => key);
}

/** Undefined for a workspace that keeps its pod, or whose pod takes no room. */
function idleWithPodSince(candidate: Candidate, now: number): number | undefined {
  const { workspace, pod, updates, idleTimeoutMs, losesState } = candidate;
  if (pod.metadata.deletionTimestamp || isUnschedulable(pod)) return undefined;
  if (idleTimeoutMs === 0 || losesState || hasWork(updates)) return undefined;
  if (!isPrepared(workspace) && !isFailed(workspace)) return undefined;
  // A later time was recorded while a clock was wrong: the pod would take room until then.
  return idleSince(workspace, updates, now + clockSkewMs);
}
