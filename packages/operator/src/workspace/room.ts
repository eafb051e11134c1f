/** Who gives up a pod when other pods find no node. Pure. */
import type { Workspace } from "@pko/api";
import { keyOf, type Key, type Known } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { isUnschedulable } from "./explain-pod.ts";
import { hasWork, idleSince, isFailed, isPrepared, type UpdateFacts } from "./view.ts";

/** A Workspace that has a pod. */
export interface Tenant {
  readonly workspace: Workspace;
  readonly pod: Known<Pod>;
  readonly updates: readonly UpdateFacts[];
  /** 0: never. */
  readonly idleTimeoutMs: number;
  /** It is not to be put to sleep, whoever may need its place. */
  readonly isSleepless: boolean;
}

/** A pod just made ready is about to get its Update: it is not put to sleep for others. */
export const leastIdleMs = 5000;

/** A pod that no node could ever take shall not keep others from their sleep's usual time. */
const roomMs = 10 * 60_000;

/** Others can help with what is used up, not with taints or selectors. */
export function wantsRoom({ metadata, status }: Known<Pod>, now: number): boolean {
  const message = status?.conditions?.find(({ type }) => type === "PodScheduled")?.message ?? "";
  const age = now - Date.parse(metadata.creationTimestamp ?? "");
  return /Insufficient|Too many pods/.test(message) && !(age > roomMs);
}

/** So many of the tenants as are wanted, of those that have had nothing to do for longest. */
export function yieldingTo(wanted: number, tenants: readonly Tenant[], now: number): Key[] {
  return tenants
    .map((tenant) => ({ key: keyOf(tenant.workspace), since: idleWithPodSince(tenant) ?? Infinity }))
    .filter(({ since }) => now - since >= leastIdleMs)
    .toSorted((a, b) => a.since - b.since)
    .slice(0, Math.max(0, wanted))
    .map(({ key }) => key);
}

/** Undefined for one that is not to sleep, or whose pod takes no room. */
function idleWithPodSince({ workspace, pod, updates, idleTimeoutMs, isSleepless }: Tenant): number | undefined {
  if (pod.metadata.deletionTimestamp || isUnschedulable(pod)) return undefined;
  if (idleTimeoutMs === 0 || isSleepless || hasWork(updates)) return undefined;
  return isPrepared(workspace) || isFailed(workspace) ? idleSince(workspace, updates) : undefined;
}
