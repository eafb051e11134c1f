/** The events of a Workspace. Pure. */
import type { AutoEvent, EventType } from "@pko/api";
import type { PrepareFailure } from "@pko/rpc";

import * as messages from "./messages.ts";
import type { Outcome, Warning } from "./outcome.ts";
import { verdictOn } from "./status.ts";
import { readyCondition, type WorkspaceView } from "./view.ts";

interface WorkspaceEvent {
  readonly type: EventType;
  readonly reason: AutoEvent | "PodStuck" | Warning["reason"];
  readonly message: string;
}

/** An event is recorded once: when the status reports something that it did not report before. */
export function workspaceEvents(view: WorkspaceView, outcome: Outcome): WorkspaceEvent[] {
  const event = eventFor(outcome);
  if (!event || outcome.kind === "unchanged") return [];
  const before = readyCondition(view.workspace);
  const { reason, message } = verdictOn(outcome);
  return before?.reason === reason && before.message === message ? [] : [event];
}

const warning = (reason: WorkspaceEvent["reason"], message: string): WorkspaceEvent => ({
  type: "Warning",
  reason,
  message,
});

function eventFor(outcome: Outcome): WorkspaceEvent | undefined {
  switch (outcome.kind) {
    case "misconfigured":
      return warning(outcome.reason ?? "StackInitializationFailure", outcome.message);
    case "blocked":
      return warning("OwnershipConflict", outcome.message);
    case "failed":
      return failureEvent(outcome.failure);
    case "unreachable":
      return warning("ConnectionFailure", outcome.message);
    case "nodeLost":
      return warning("NodeLost", outcome.message);
    case "waiting":
      return outcome.isStuck ? warning("PodStuck", outcome.message) : undefined;
    case "ready":
      return outcome.warning
        ? warning(outcome.warning.reason, outcome.warning.message)
        : { type: "Normal", reason: "Initialized", message: messages.prepared };
    case "deleting":
    case "waitingForSlot":
    case "rolling":
    case "waitingForRun":
    case "preparing":
    case "idle":
    case "unchanged":
      return undefined;
  }
}

function failureEvent({ phase, message }: PrepareFailure): WorkspaceEvent {
  return warning(phase === "install" ? "InstallationFailure" : "StackInitializationFailure", message);
}
