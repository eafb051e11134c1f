/** What a rule decides, and how it becomes a plan. */
import type { Rule } from "@pko/kube";

import { pauseMs, type PauseLimits } from "../../shared/pauses.ts";
import { lostNodeAt } from "../../shared/pods/lost-node.ts";
import type { Outcome } from "../outcome.ts";
import type { Step, WorkspacePlan } from "../steps.ts";
import { msWaiting, type PodFacts, type WorkspaceView } from "../view.ts";

export interface Decision {
  readonly outcome: Outcome;
  readonly steps: readonly Step[];
  /** When to reconcile again even if nothing changes. */
  readonly afterMs?: number;
}

export type WorkspaceRule = Rule<WorkspaceView, Decision>;

export const decide = (outcome: Outcome, afterMs?: number, steps: readonly Step[] = []): Decision => ({
  outcome,
  steps,
  ...(afterMs !== undefined && { afterMs }),
});

/** Requeue intervals and waiting times, in milliseconds. */
export const intervals = {
  /** Something that is not urgent is checked again. */
  recheck: 5 * 60_000,
  /** A prepared pod that waits for work: its inputs are polled, and a new CA requeues it. Its certificate expires in days. */
  warm: 60 * 60_000,
  /** Something is missing that may appear soon. */
  missing: 5000,
  /** An Update that saw the workspace ready may still start. */
  settle: 2000,
  /** A run whose pod is down for longer is given up. */
  lostRun: 120_000,
  /** An agent that has just started may not listen yet. */
  connect: 10_000,
  /** An agent that is copied first, to a busy disk. */
  copyAndConnect: 60_000,
  /** A pod without a run has nothing to finish. */
  terminating: 60_000,
  /** How long a StatefulSet may take to create a pod before a dry run shows why it does not. */
  podMissing: 10_000,
  /** In case a watch misses a change. */
  safety: 60_000,
} as const;

export function planOf(view: WorkspaceView, { outcome, steps, afterMs = Infinity }: Decision): WorkspacePlan {
  const lostAt = lostNodeAt(view.pod?.overdue, view.lostNodeAfterMs);
  const requeueAt = Math.min(view.now + afterMs, lostAt > view.now ? lostAt : Infinity);
  return { outcome, steps, ...(Number.isFinite(requeueAt) && { requeueAt }) };
}

/** Something is missing that may appear soon, and that no watch reports: checked less often the longer it is missing. */
export const missingPause = (view: WorkspaceView): number => pause(view, { least: intervals.missing, most: 60_000 });

/** Other workspaces may become idle at any time. */
export const roomPause = (view: WorkspaceView): number => pause(view, { least: intervals.missing, most: 15_000 });

/** In case a watch misses a change. Not longer: others may begin to wait for the slot, or the agent may respond again. */
export const safetyPause = (view: WorkspaceView): number => pause(view, { least: intervals.safety, most: 120_000 });

/** A person has to change something that no watch reports. */
export const problemPause = (view: WorkspaceView): number => pause(view, { least: intervals.safety, most: 600_000 });

const pause = (view: WorkspaceView, limits: PauseLimits): number =>
  pauseMs({ sinceMs: msWaiting(view), id: view.workspace.metadata.uid ?? "" }, limits);

/** Why the pod is not up. */
export function explained({ explanation, isDeleting }: PodFacts): Outcome {
  const { message, stuck } = explanation;
  return isDeleting ? { kind: "rolling", message } : { kind: "waiting", message, isStuck: stuck };
}
