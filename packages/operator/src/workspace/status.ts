/** The status of a Workspace. Pure. */
import type { Condition, WorkspaceReason, WorkspaceStatus } from "@pko/api";
import type { PrepareFailure } from "@pko/rpc";

import { ownershipConflict } from "../shared/objects/ownership.ts";
import { conditionAt } from "../shared/objects/conditions.ts";
import { truncate } from "../shared/truncate.ts";
import * as messages from "./messages.ts";
import type { Outcome } from "./outcome.ts";
import { isRetryScheduled, isTransient } from "./prepare/retry.ts";
import { isFailed, type WorkspaceView } from "./view.ts";

/** What the conditions report. */
interface Verdict {
  readonly isReady: boolean;
  readonly isStalled: boolean;
  readonly reason: WorkspaceReason;
  readonly message: string;
}

type ReportedOutcome = Exclude<Outcome, { kind: "unchanged" }>;

export function workspaceStatus(view: WorkspaceView, outcome: Outcome): WorkspaceStatus {
  const { workspace, now } = view;
  const { status: before = {}, metadata } = workspace;
  if (outcome.kind === "unchanged" || isProgressOfRetry(view, outcome)) return before;
  const { isReady, isStalled, reason, message } = verdictOn(outcome);
  const readyStatus = isReady ? "True" : "False";
  const ready = conditionAt(workspace, { type: "Ready", status: readyStatus, reason, message }, now);
  const stalled = isStalled && conditionAt(workspace, { type: "Stalled", status: "True", reason, message }, now);
  const address = addressAfter(before, outcome);
  const pulumiVersion = (outcome.kind === "ready" ? outcome.pulumiVersion : undefined) ?? before.pulumiVersion;
  const warning = outcome.kind === "ready" ? outcome.warning?.message : before.warning;
  return {
    observedGeneration: metadata.generation ?? 0,
    ...(address !== undefined && { address }),
    ...(pulumiVersion !== undefined && { pulumiVersion }),
    ...(warning !== undefined && { warning: shortened(warning) }),
    ...comparisonAfter(before, outcome),
    conditions: [ready, ...(stalled ? [stalled] : [])],
  };
}

/**
 * A failed preparation is retried, in its pod or in a new one: the status stays until the result is known. Otherwise, each attempt
 * would resolve the alert for the failure. A person or an Update that wakes the workspace before the next attempt sees its progress.
 */
function isProgressOfRetry(view: WorkspaceView, outcome: ReportedOutcome): boolean {
  if (!view.retry || !isFailed(view.workspace)) return false;
  if (outcome.kind === "preparing") return true;
  const isAwaited = startOutcomes.has(outcome.kind) && !("isStuck" in outcome && outcome.isStuck);
  return isAwaited && !isRetryScheduled(view);
}

/** The pod of an attempt does not exist yet, or it has not started. */
const startOutcomes: ReadonlySet<Outcome["kind"]> = new Set<Outcome["kind"]>(["waiting", "waitingForSlot", "rolling"]);

/** It is about the current spec, and so are the states ready and idle. */
function comparisonAfter(before: WorkspaceStatus, outcome: ReportedOutcome): Pick<WorkspaceStatus, "unchangedSince"> {
  const { unchangedSince } = outcome.kind === "ready" ? outcome : outcome.kind === "idle" ? before : {};
  return unchangedSince === undefined ? {} : { unchangedSince };
}

const startReasons: ReadonlySet<string> = new Set<WorkspaceReason>([
  "WaitingForReplicas",
  "Initializing",
  "Installing",
]);

/** Which of these reasons it is, and the message, only describe the progress of the start. */
export function withoutProgress(status: WorkspaceStatus): object {
  const { conditions = [], ...rest } = status;
  const isStarting = conditions.some(({ reason }) => startReasons.has(reason));
  const statusOf = ({ type, status: is, lastTransitionTime }: Condition) => ({ type, status: is, lastTransitionTime });
  return isStarting ? { ...rest, conditions: conditions.map(statusOf) } : status;
}

export function verdictOn(outcome: ReportedOutcome): Verdict {
  const verdict = fullVerdictOn(outcome);
  return { ...verdict, message: shortened(verdict.message) };
}

const notReady = (reason: WorkspaceReason, message: string): Verdict => ({
  isReady: false,
  isStalled: false,
  reason,
  message,
});
const stalled = (reason: WorkspaceReason, message: string): Verdict => ({
  ...notReady(reason, message),
  isStalled: true,
});
const ready = (message: string): Verdict => ({ isReady: true, isStalled: false, reason: "Succeeded", message });

function fullVerdictOn(outcome: ReportedOutcome): Verdict {
  switch (outcome.kind) {
    case "deleting":
      return notReady("Deleting", messages.deleting);
    case "misconfigured":
      return stalled(outcome.reason ?? "InitializationFailed", outcome.message);
    case "blocked":
      return stalled(ownershipConflict, outcome.message);
    case "waiting":
      return notReady("WaitingForReplicas", outcome.message);
    case "waitingForSlot":
      return notReady("WaitingForSlot", outcome.message);
    case "rolling":
    case "waitingForRun":
      return notReady("RollingUpdate", outcome.message);
    case "preparing": {
      const { phase = "source" } = outcome;
      return notReady(phase === "install" ? "Installing" : "Initializing", messages.phases[phase]);
    }
    case "failed":
      return failureVerdict(outcome.failure);
    case "unreachable":
      return notReady("ConnectionFailed", messages.agentUnreachable(outcome.message));
    case "nodeLost":
      return stalled("NodeLost", outcome.message);
    case "ready":
      return ready(outcome.warning ? messages.preparedWithWarning(outcome.warning.message) : messages.prepared);
    case "idle":
      return ready(messages.idle);
  }
}

function failureVerdict(failure: PrepareFailure): Verdict {
  const message = [failure.message, ...failure.lines].join("\n");
  if (failure.reason === "versionTooLow") return stalled("IncompatibleConfiguration", message);
  const reason = failure.phase === "install" ? "InstallationFailed" : "InitializationFailed";
  return isTransient(failure) ? notReady(reason, message) : stalled(reason, message);
}

/** Set only while a prepared pod is up. A run for which a change waits continues at its address. */
function addressAfter(before: WorkspaceStatus, outcome: Outcome): string | undefined {
  if (outcome.kind === "ready") return outcome.address;
  return outcome.kind === "waitingForRun" ? before.address : undefined;
}

/** A condition may have 32,768 characters, which is more than anyone reads. */
const longestMessage = 4000;

const shortened = (message: string): string => truncate(message, longestMessage);
