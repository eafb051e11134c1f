/**
 * What to do next about an Update. Pure.
 *
 *   made ──▶ waiting ──▶ guarded ──▶ intended ──▶ running ──▶ ended ──▶ released ──▶ expired
 *             │ ▲          (our        (the pod     │ ▲         (Secrets,
 *             └─┘        finalizer)   is on record) └─┘       then status)
 *
 * An Update runs at most once. Before the agent is first asked, status records the pod. From then on:
 *
 *   the recorded pod is there          start, which does nothing the second time, and follow
 *   it is gone, or another is there    the run died with it: aborted, never started elsewhere
 *   the Update is being deleted        never start; cancel, and wait for the end
 *
 * Whoever comes after a crash sees one of these states, and goes on from there.
 */
import { isDeepStrictEqual } from "node:util";
import { describeProblems, outputsSecretNameOf, type AutoEvent, type UpdateStatus } from "@pko/api";
import type { EventNote, Known } from "@pko/kube";
import { assertNever, type RunResult, type StartRequest } from "@pko/rpc";
import type { Secret } from "kubernetes-types/core/v1";

import type { AgentPod, Run } from "../agents/agents.ts";
import { truncate } from "../shared/truncate.ts";
import { lostNodeAt, lostNodeMessage } from "../lost-node.ts";
import { conditionOf, endTimeOf, holds, isComplete } from "./conditions.ts";
import { updateFinalizer } from "./finalizer.ts";
import { operationOf } from "./operation.ts";
import type { Ending, Outcome } from "./outcome.ts";
import { stdoutOf, timestamp } from "./report.ts";
import { outputsSecret, stdoutSecret } from "./secrets.ts";
import { statusOf, underWayMessage } from "./status.ts";
import type { UpdateView } from "./view.ts";

export type Step =
  | { readonly kind: "none" }
  | { readonly kind: "report"; readonly status: UpdateStatus; readonly event?: Note }
  | { readonly kind: "guard" }
  /** Put the pod on record, if the API server itself still says that all is ready. */
  | { readonly kind: "intend"; readonly status: UpdateStatus }
  | { readonly kind: "follow"; readonly pod: AgentPod; readonly request: StartRequest }
  | { readonly kind: "cancel"; readonly pod: AgentPod; readonly runId: string; readonly status: UpdateStatus }
  | End
  | { readonly kind: "release" }
  | { readonly kind: "expire"; readonly event: Note };

interface End {
  readonly kind: "end";
  readonly ending: Ending;
  readonly keep: Keepsakes;
  readonly event: Note;
  readonly proof?: Proof;
}

type Note = EventNote & { readonly reason: AutoEvent };

export interface Plan {
  readonly step: Step;
  /** When to look again though nothing has changed. */
  readonly lookAt?: number;
}

/**
 * What an Update is ended for must be so by the word of the API server itself. A store may be half a minute old, and a run
 * that goes on must not be called lost: it would be made again beside it (docs/adr/0010-stores-prove-nothing.md).
 */
export type Proof = "podGone" | "stackUnknown";

/** What is written before status says that it is over. */
export interface Keepsakes {
  readonly outputs?: Known<Secret>;
  /** The Secret that there would be, had the outputs been read: named, lest it seem that there are none. */
  readonly unreadOutputs?: string;
  readonly stdout?: Known<Secret>;
  readonly notes: readonly string[];
}

type Check = (view: UpdateView) => Plan | undefined;

const checks: readonly Check[] = [
  endedAndGuarded,
  ended,
  deletedBeforeItBegan,
  specInvalid,
  begunByAnother,
  runOver,
  podLost,
  deletedWhileRunning,
  notFollowed,
  running,
  stackUnknown,
  workspaceUnavailable,
  workspaceTaken,
  podNotThere,
  notCleared,
  unguarded,
];

export function planUpdate(view: UpdateView): Plan {
  for (const check of checks) {
    const plan = check(view);
    if (plan) return plan;
  }
  return intend(view);
}

const none = { kind: "none" } as const;

function endedAndGuarded({ update }: UpdateView): Plan | undefined {
  return isComplete(update) && isGuarded(update) ? { step: { kind: "release" } } : undefined;
}

function ended({ update, ttlMs, now }: UpdateView): Plan | undefined {
  if (!isComplete(update)) return undefined;
  if (ttlMs === undefined || isDeleting(update)) return { step: none };
  const endTime = endTimeOf(update);
  const endMs = Date.parse(endTime ?? "");
  const expiresAt = (Number.isNaN(endMs) ? now : endMs) + ttlMs;
  if (expiresAt > now) return { step: none, lookAt: expiresAt };
  const message = `It ended at ${endTime ?? "an unknown time"} and was kept for ${update.spec?.ttlAfterCompleted}.`;
  return { step: { kind: "expire", event: { type: "Normal", reason: "UpdateExpired", message } } };
}

function deletedBeforeItBegan(view: UpdateView): Plan | undefined {
  if (!isDeleting(view.update) || hasIntent(view)) return undefined;
  return end(view, { reason: "Canceled", message: "The Update was deleted before its operation began." });
}

function specInvalid(view: UpdateView): Plan | undefined {
  if (view.spec.ok || hasIntent(view)) return undefined;
  return end(view, { reason: "Failed", message: `The spec is invalid:\n${describeProblems(view.spec.problems)}` });
}

/**
 * The operator that this one replaces records no pod, and no time before the end: only that it progresses. It follows no run
 * after a restart, so nobody does.
 */
function begunByAnother(view: UpdateView): Plan | undefined {
  const since = view.update.status?.startTime ?? conditionOf(view.update, "Progressing", "True")?.lastTransitionTime;
  if (since === undefined || hasIntent(view)) return undefined;
  return end(view, {
    reason: "Aborted",
    message: `The operation was started at ${since} by an operator that has been replaced since; how it ended is not known.`,
  });
}

/** The agent's own word on how it ended, or that it never will begin. */
function runOver(view: UpdateView): Plan | undefined {
  const { run } = view;
  if (run?.state === "finished") return end(view, endingOf(run.result, view), { run });
  if (run?.state !== "refused") return undefined;
  if (run.code === "other") {
    return end(view, { reason: "UpdateFailed", message: `The workspace refused the operation: ${run.message}` });
  }
  if (run.code !== "notFound") return undefined;
  if (isDeleting(view.update)) {
    return end(view, { reason: "Canceled", message: "The Update was deleted before its operation began." });
  }
  return end(view, {
    reason: "Aborted",
    message: `The workspace knows nothing of the operation any more (${run.message}); it is not started again.`,
  });
}

function podLost(view: UpdateView): Plan | undefined {
  const { update, pod } = view;
  const podUid = update.status?.podUid;
  if (podUid === undefined || pod?.agent.uid === podUid) return undefined;
  const message =
    "The workspace's pod was deleted or replaced while the operation may have been running. " +
    "What it had done by then is done; this Update does not start it again.";
  return end(view, { reason: "Aborted", message }, { proof: "podGone" });
}

/** The agent kills what does not stop by itself after nine minutes. */
const giveUpMs = 15 * 60_000;

function deletedWhileRunning(view: UpdateView): Plan | undefined {
  const { update, pod, now } = view;
  if (!isDeleting(update) || !hasIntent(view) || !pod) return undefined;
  const deletedMs = Date.parse(update.metadata.deletionTimestamp ?? "");
  const givenUpAt = (Number.isNaN(deletedMs) ? now : deletedMs) + giveUpMs;
  if (givenUpAt <= now) {
    return end(view, {
      reason: "Unknown",
      message:
        "The Update was deleted; the workspace has not confirmed for 15 minutes that the operation was cancelled.",
    });
  }
  const message = "The operation is being cancelled, because the Update was deleted.";
  const status = statusOf(view, nodeLost(view) ?? { kind: "progressing", reason: "Progressing", message });
  return { step: { kind: "cancel", pod: pod.agent, runId: uidOf(view), status }, lookAt: givenUpAt };
}

function notFollowed(view: UpdateView): Plan | undefined {
  const { pod, spec, run, logLevel, lostRuns } = view;
  if (!hasIntent(view) || run || !pod) return undefined;
  if (pod.agent.ip === "") return report(view, unreachable("its pod has no address"));
  if (!spec.ok) return end(view, { reason: "Unknown", message: "The spec can no longer be understood." });
  const request = {
    runId: uidOf(view),
    stack: spec.value.stackName,
    operation: operationOf(spec.value, logLevel),
    ...(lostRuns.length > 0 && { lostRuns: [...lostRuns] }),
  };
  return { step: { kind: "follow", pod: pod.agent, request } };
}

function running(view: UpdateView): Plan | undefined {
  return view.run && hasIntent(view) ? planRunning(view, view.run) : undefined;
}

function planRunning(view: UpdateView, run: Run): Plan {
  switch (run.state) {
    case "starting":
      return report(view, nodeLost(view) ?? underWay);
    case "running":
      return reportProgress(view, run);
    case "unreachable":
      return reportUnreachable(view, run);
    case "refused":
      return report(view, {
        kind: "progressing",
        reason: "WorkspaceNotReady",
        message: `The workspace cannot start the operation yet: ${run.message}.`,
      });
    case "finished":
      return { step: none };
    default:
      return assertNever(run);
  }
}

function reportUnreachable(view: UpdateView, { message, sinceMs }: Extract<Run, { state: "unreachable" }>): Plan {
  const lostAt = lostNodeAt(view.pod?.overdue, view.lostNodeAfterMs);
  return report(
    view,
    nodeLost(view) ?? unreachable(message, sinceMs),
    lostAt > view.now && Number.isFinite(lostAt) ? lostAt : undefined,
  );
}

/** The agent does not answer, and for too long the kubelet has not done what a living one does. */
function nodeLost({ pod, run, update, now, lostNodeAfterMs }: UpdateView): Outcome | undefined {
  // An operator that has just started has not tried yet: what is known stays until it has.
  const isUnreachable = run?.state === "unreachable" || (run?.state !== "running" && holds(update, "Stalled"));
  if (!pod?.overdue || !isUnreachable || now < lostNodeAt(pod.overdue, lostNodeAfterMs)) return undefined;
  const doubt = "nobody can tell whether the operation still runs there, so no other is started";
  return { kind: "stalled", reason: "NodeLost", message: lostNodeMessage(pod.overdue, { doubt }) };
}

function unreachable(problem: string, sinceMs?: number): Outcome {
  const since = sinceMs === undefined ? "" : ` since ${timestamp(sinceMs)}`;
  const message = `The workspace has not been reached${since} (${problem}). The operation goes on there, if its pod lives.`;
  return { kind: "progressing", reason: "TransientFailure", message: truncate(message, 1000) };
}

const underWay = { kind: "progressing", reason: "Progressing", message: underWayMessage } as const;

const shortestReportMs = 2_000;
const longestReportMs = 15_000;

/** Soon at first, more rarely the longer it takes: hundreds of long runs must not fill the API server. */
function reportIntervalMs({ now, update }: UpdateView): number {
  const ageMs = now - Date.parse(update.status?.startTime ?? "");
  return Math.min(longestReportMs, Math.max(shortestReportMs, Number.isNaN(ageMs) ? 0 : ageMs / 20));
}

function reportProgress(view: UpdateView, { progress }: Extract<Run, { state: "running" }>): Plan {
  const { progress: told, startTime } = view.update.status ?? {};
  // A short run ends before there was anything to tell.
  const toldMs = Date.parse(told?.time ?? startTime ?? "");
  const dueAt = Number.isNaN(toldMs) ? view.now : toldMs + reportIntervalMs(view);
  const latest = statusOf(view, { ...underWay, progress });
  const isNews = !told || !isDeepStrictEqual({ ...latest.progress, time: told.time }, told);
  // At once: if the pod is lost, only what is recorded here tells whose lock it has left.
  if (!isDeepStrictEqual(latest.process, view.update.status?.process))
    return { step: { kind: "report", status: latest } };
  if (!isNews) return report(view, underWay);
  return dueAt <= view.now ? { step: { kind: "report", status: latest } } : report(view, underWay, dueAt);
}

/** It would wait for ever. While the Workspace is being prepared for a new spec, that may still bring the stack. */
function stackUnknown(view: UpdateView): Plan | undefined {
  const { workspace, spec } = view;
  if (workspace.state !== "otherStack" || !workspace.isPrepared || !spec.ok) return undefined;
  const { workspaceName, stackName } = spec.value;
  const message =
    `spec.stackName: the Workspace ${workspaceName} has no stack ${stackName}, only ${listed(workspace.stacks)}; ` +
    "make an Update with one of these names, or add the stack to spec.stacks of the Workspace first";
  return end(view, { reason: "Failed", message }, { proof: "stackUnknown" });
}

const listed = (stacks: readonly string[]): string => truncate(stacks.join(", "), 200);

function workspaceUnavailable(view: UpdateView): Plan | undefined {
  const { workspace, spec } = view;
  const name = spec.ok ? spec.value.workspaceName : "";
  switch (workspace.state) {
    case "missing":
      return wait(view, `There is no Workspace ${name}.`, "WorkspaceNotFound");
    case "deleting":
      return wait(view, `The Workspace ${name} is being deleted.`);
    case "otherStack":
      return wait(view, `The Workspace ${name} has no stack of that name, only ${listed(workspace.stacks)}.`);
    case "notReady":
      return wait(view, `The Workspace ${name} is not ready: ${workspace.message}`);
    case "asleep":
      return wait(view, `The Workspace ${name} is being woken.`);
    case "ready":
      return undefined;
    default:
      return assertNever(workspace);
  }
}

function workspaceTaken(view: UpdateView): Plan | undefined {
  return view.before === undefined ? undefined : wait(view, `The Update ${view.before} comes first in the Workspace.`);
}

/** The address is of a pod that is not there any more, or not yet known to us. */
function podNotThere(view: UpdateView): Plan | undefined {
  const { workspace, pod } = view;
  if (workspace.state !== "ready") return undefined;
  const isThere = pod && !pod.isDeleting && pod.agent.uid !== "" && pod.agent.ip === workspace.address.host;
  return isThere ? undefined : wait(view, "The Workspace's pod is being replaced.");
}

/** In case nobody wakes it. */
const clearanceMs = 5_000;

/** A Secret may have changed for this very Update: its Workspace looks first. Soon over, so not worth a word. */
function notCleared({ isCleared, now }: UpdateView): Plan | undefined {
  return isCleared ? undefined : { step: none, lookAt: now + clearanceMs };
}

/** Before the intent: an Update that may be running is never without its guard. */
function unguarded({ update }: UpdateView): Plan | undefined {
  return isGuarded(update) ? undefined : { step: { kind: "guard" } };
}

function intend(view: UpdateView): Plan {
  const status = statusOf(view, { kind: "intended", podUid: view.pod?.agent.uid ?? "" });
  return { step: { kind: "intend", status } };
}

type Missing = Extract<Outcome, { kind: "waiting" }>["reason"];

function wait(view: UpdateView, message: string, reason: Missing = "WorkspaceNotReady"): Plan {
  return report(view, { kind: "waiting", reason, message });
}

/** Written only where it says something new. */
function report(view: UpdateView, outcome: Outcome, lookAt?: number): Plan {
  const status = statusOf(view, outcome);
  const event = stalledEvent(view, outcome);
  const step: Step = isDeepStrictEqual(status, view.update.status)
    ? none
    : { kind: "report", status, ...(event && { event }) };
  return { step, ...(lookAt !== undefined && { lookAt }) };
}

/** Once, when it becomes so. */
function stalledEvent({ update }: UpdateView, outcome: Outcome): Note | undefined {
  if (outcome.kind !== "stalled" || holds(update, "Stalled")) return undefined;
  return { type: "Warning", reason: outcome.reason, message: outcome.message };
}

interface Support {
  readonly run?: Extract<Run, { state: "finished" }>;
  readonly proof?: Proof;
}

function end(view: UpdateView, ending: Ending, { run, proof }: Support = {}): Plan {
  const isSuccess = ending.reason === "UpdateSucceeded";
  const event: Note = {
    type: isSuccess ? "Normal" : "Warning",
    reason: isSuccess ? "UpdateSucceeded" : "UpdateFailed",
    message: ending.message,
  };
  const keep = run ? keepsakesOf(view, run) : { notes: [] };
  return { step: { kind: "end", ending, keep, event, ...(proof && { proof }) } };
}

function keepsakesOf({ update }: UpdateView, run: Extract<Run, { state: "finished" }>): Keepsakes {
  const { result, outputs, outputsProblem } = run;
  const kept = outputsSecret(update, outputs);
  const stdout = stdoutOf(result);
  const isCut = stdout !== undefined && stdout.text !== result.output.tail;
  const leftOut = kept?.leftOut ?? [];
  return {
    ...(kept && { outputs: kept.secret }),
    ...(outputsProblem !== undefined && { unreadOutputs: outputsSecretNameOf(update.metadata.name ?? "") }),
    ...(isCut && { stdout: stdoutSecret(update, result.output.tail) }),
    notes: [
      ...(outputsProblem === undefined ? [] : [`The outputs could not be read: ${outputsProblem}`]),
      ...(leftOut.length === 0 ? [] : [`Too large for a Secret, and left out: ${truncate(leftOut.join(", "), 1000)}`]),
    ],
  };
}

function endingOf(result: RunResult, { update }: UpdateView): Ending {
  const what = update.spec?.type ?? result.operation;
  const said = result.error ? `: ${result.error.message}` : ".";
  switch (result.outcome) {
    case "succeeded":
      return { reason: "UpdateSucceeded", message: `The ${what} succeeded.`, result };
    case "failed":
      return { reason: "UpdateFailed", message: `The ${what} failed${said}`, result };
    case "cancelled":
      return { reason: "Canceled", message: `The ${what} was cancelled${said}`, result };
    case "interrupted":
      return { reason: "Aborted", message: `The ${what} was interrupted${said}`, result };
    default:
      return assertNever(result.outcome);
  }
}

function isGuarded({ metadata }: UpdateView["update"]): boolean {
  return metadata.finalizers?.includes(updateFinalizer) ?? false;
}

function isDeleting({ metadata }: UpdateView["update"]): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function hasIntent({ update }: UpdateView): boolean {
  return update.status?.podUid !== undefined;
}

function uidOf({ update }: UpdateView): string {
  return update.metadata.uid ?? "";
}
