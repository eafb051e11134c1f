/** The rule for a pod that is up: its agent prepares the program and the stacks. */
import type { Prepared, PrepareFailure } from "@pko/rpc";

import type { Preparation } from "../../agents/agents.ts";
import { jittered } from "../../shared/pauses.ts";
import { idlesAt } from "../idle/timeout.ts";
import * as messages from "../messages.ts";
import type { Outcome, Warning } from "../outcome.ts";
import { isRetryDue, retryAfterFailure } from "../prepare/retry.ts";
import { agentAddress, isPrepared, isServing, type WorkspaceView } from "../view.ts";
import { decide, intervals, safetyPause, type Decision } from "./decision.ts";
import { requestIncomplete } from "./spec.ts";

/** Applies to every view. A request that the agent has already been sent costs nothing. */
export function prepare(view: WorkspaceView): Decision {
  const { pod, inputs, preparation } = view;
  if (preparation) return outcomeOfPreparation(view, preparation);
  const requested = inputs?.requested;
  if (!pod || !requested || requested.kind === "incomplete") return decide({ kind: "unchanged" }, intervals.recheck);
  if (requested.kind === "needsAppToken") return requestIncomplete(view) ?? decide({ kind: "unchanged" });
  const { request } = requested;
  const step = { kind: "prepare", pod: pod.agent, request, retry: isRetryDue(view) } as const;
  return decide({ kind: "preparing" }, intervals.safety, [step]);
}

export function outcomeOfPreparation(view: WorkspaceView, preparation: Preparation): Decision {
  const outcome = outcomeAfter(view, preparation);
  return decide(outcome, requeueAfterMs(view, outcome));
}

export const isAnswered = (preparation: Preparation): boolean =>
  preparation.state === "running" ? preparation.phase !== undefined : preparation.state !== "unreachable";

function outcomeAfter(view: WorkspaceView, preparation: Preparation): Outcome {
  switch (preparation.state) {
    case "running":
      return inProgress(view, { kind: "preparing", ...(preparation.phase && { phase: preparation.phase }) });
    case "busy":
      return isServing(view)
        ? { kind: "unchanged" }
        : { kind: "waitingForRun", message: messages.waitsForRun(preparation.message) };
    case "unreachable": {
      const { message, sinceMs } = preparation;
      const isStarting = view.now - sinceMs < (view.pod?.mayLackAgent ? intervals.copyAndConnect : intervals.connect);
      return isStarting ? inProgress(view, { kind: "preparing" }) : { kind: "unreachable", message };
    }
    case "done":
      return preparation.result.ok
        ? ready(view, preparation.result.prepared)
        : failed(view, preparation.result.failure);
  }
}

/** While a prepared workspace is checked, the status stays until the result is known. */
function inProgress(view: WorkspaceView, outcome: Outcome): Outcome {
  return isServing(view) ? { kind: "unchanged" } : outcome;
}

function failed(view: WorkspaceView, failure: PrepareFailure): Outcome {
  return failure.reason === "superseded" ? inProgress(view, { kind: "preparing" }) : { kind: "failed", failure };
}

function ready({ pod, inputs }: WorkspaceView, prepared: Prepared): Outcome {
  const { pulumiVersion, unchangedSince, warning: ofStack } = prepared;
  const warning = stateWarning(inputs?.ephemeralState) ?? stackWarning(ofStack);
  return {
    kind: "ready",
    address: pod ? agentAddress(pod.agent) : "",
    ...(pulumiVersion && { pulumiVersion }),
    ...(warning && { warning }),
    ...(unchangedSince && { unchangedSince }),
  };
}

const stateWarning = (folder: string | undefined): Warning | undefined =>
  folder === undefined ? undefined : { reason: "StateNotKept", message: messages.stateNotKept(folder) };

const stackWarning = (message: string | undefined): Warning | undefined =>
  message ? { reason: "SecretsProviderIgnored", message } : undefined;

function requeueAfterMs(view: WorkspaceView, outcome: Outcome): number {
  if (outcome.kind === "failed") {
    return Math.min(safetyPause(view), retryAfterFailure(view, outcome.failure).at - view.now);
  }
  if (outcome.kind !== "ready" && outcome.kind !== "unchanged") return safetyPause(view);
  // The status does not report it as ready yet: its idle time starts now.
  const idleAt = isPrepared(view.workspace) ? idlesAt(view) : view.now + (view.idleTimeoutMs || Infinity);
  const recheckMs = outcome.kind === "ready" ? intervals.warm : intervals.recheck;
  const pause = jittered(recheckMs, view.workspace.metadata.uid ?? "");
  return Math.max(1000, Math.min(pause, (idleAt ?? Infinity) - view.now));
}
