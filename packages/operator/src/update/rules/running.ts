/** Runs that may be active in the recorded pod. */
import { isDeepStrictEqual } from "node:util";

import type { Run } from "../../agents/agents.ts";
import { startRequest } from "../desired/operation.ts";
import { lostNodeAt } from "../../shared/pods/lost-node.ts";
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import type { UpdatePlan } from "../steps.ts";
import { progressSummary } from "../result-text.ts";
import { hasReported, hasStarted, runIdOf, type PodFacts, type UpdateView } from "../view.ts";
import { planToApply } from "./approval.ts";
import { nodeLost } from "./node-lost.ts";
import { endOverdueAt } from "./timeout.ts";
import { parsePastTimestamp, parseTimestamp } from "../../shared/parse-timestamp.ts";

/**
 * An operation that was seen running is never started again: a node that lost its power may have lost the agent's record of it. Then the
 * agent does not find the run, and the Update is aborted.
 */
export function runNotAttached(view: UpdateView): UpdatePlan | undefined {
  const { pod, run } = view;
  if (!hasReported(view) || run || !pod || pod.agent.ip === "") return undefined;
  return attachTo(pod, view);
}

export function runNotFollowed(view: UpdateView): UpdatePlan | undefined {
  const { pod, spec, run } = view;
  if (!hasStarted(view) || run || !pod) return undefined;
  if (pod.agent.ip === "") return report(unreachable(messages.noPodAddress));
  // It has become invalid since the start.
  if (!spec.ok) return attachTo(pod, view);
  const request = startRequest(view, spec.value);
  return { steps: [{ kind: "followRun", pod: pod.agent, request }], outcome: { kind: "unchanged" } };
}

/** After a restart of the operator, or between the start and the first request: the plan is not kept in memory. */
export function planNotRead(view: UpdateView): UpdatePlan | undefined {
  const { pod, run, planContent } = view;
  const applied = planToApply(view);
  if (!hasStarted(view) || run || !pod || pod.agent.ip === "" || !applied) return undefined;
  switch (planContent?.kind) {
    case undefined:
      return { steps: [{ kind: "readPlan", plan: applied }], outcome: { kind: "unchanged" } };
    case "lost":
      return attachTo(pod, view);
    case "read":
      return undefined;
  }
}

function attachTo({ agent }: PodFacts, view: UpdateView): UpdatePlan {
  return { steps: [{ kind: "attachRun", pod: agent, runId: runIdOf(view) }], outcome: { kind: "unchanged" } };
}

export function running(view: UpdateView): UpdatePlan | undefined {
  const { run } = view;
  if (!run || !hasStarted(view)) return undefined;
  return requeuedBy(endOverdueAt(view), reportRun(view, run));
}

function reportRun(view: UpdateView, run: Run): UpdatePlan | undefined {
  switch (run.state) {
    case "starting":
      return report(nodeLost(view) ?? stillRunning);
    case "running":
      return reportProgress(view, run);
    case "unreachable":
      return reportUnreachable(view, run);
    case "refused":
      return report({
        kind: "progressing",
        reason: "WorkspaceNotReady",
        message: messages.notStartable(run.message),
      });
    case "finished":
      return undefined;
  }
}

/** An agent that hangs reports nothing that would requeue the Update. */
function requeuedBy(at: number, plan: UpdatePlan | undefined): UpdatePlan | undefined {
  const requeueAt = Math.min(at, plan?.requeueAt ?? Infinity);
  return plan && Number.isFinite(requeueAt) ? { ...plan, requeueAt } : plan;
}

function report(outcome: Outcome, requeueAt?: number): UpdatePlan {
  return { steps: [], outcome, ...(requeueAt !== undefined && { requeueAt }) };
}

const stillRunning = { kind: "progressing", reason: "Progressing", message: messages.running } as const;

function unreachable(problem: string, sinceMs?: number): Outcome {
  return { kind: "progressing", reason: "TransientFailure", message: messages.unreachable(problem, sinceMs) };
}

function reportUnreachable(view: UpdateView, { message, sinceMs }: Extract<Run, { state: "unreachable" }>): UpdatePlan {
  const lostAt = lostNodeAt(view.pod?.overdue, view.lostNodeAfterMs);
  const isAhead = lostAt > view.now && Number.isFinite(lostAt);
  return report(nodeLost(view) ?? unreachable(message, sinceMs), isAhead ? lostAt : undefined);
}

function reportProgress(view: UpdateView, { progress }: Extract<Run, { state: "running" }>): UpdatePlan {
  const { progress: reported, startTime, process } = view.update.status ?? {};
  const latest = { ...stillRunning, progress };
  // Without delay: if the pod is lost, only this record identifies the process whose lock is left.
  if (progress.process && !isDeepStrictEqual(progress.process, process)) return report(latest);
  const summary = progressSummary(view, progress);
  if (reported && isDeepStrictEqual({ ...summary, time: reported.time }, reported)) return report(stillRunning);
  // Counted from the start, so that a short run ends before its first report.
  const reportedMs = parsePastTimestamp(reported?.time ?? startTime, view.now);
  const dueAt = reportedMs === undefined ? view.now : reportedMs + reportIntervalMs(view);
  return dueAt <= view.now ? report(latest) : report(stillRunning, dueAt);
}

const shortestReportMs = 2_000;
const longestReportMs = 15_000;

/** Frequent at first, rarer the longer the run takes: hundreds of long runs must not overload the API server. */
function reportIntervalMs({ now, update }: UpdateView): number {
  const ageMs = now - (parseTimestamp(update.status?.startTime) ?? now);
  return Math.min(longestReportMs, Math.max(shortestReportMs, ageMs / 20));
}
