/** The one place that computes a Workspace's status. Pure. */
import type { Condition, EventType, AutoEvent, Workspace, WorkspaceReason, WorkspaceStatus } from "@pko/api";
import { assertNever } from "@pko/rpc";

import { truncate } from "../shared/truncate.ts";
import { ownershipConflict } from "../ownership.ts";
import type { Outcome, Warning } from "./outcome.ts";
import { isTransient } from "./plan.ts";
import { readyOf, type WorkspaceView } from "./view.ts";

interface Verdict {
  readonly ready: boolean;
  readonly reason: WorkspaceReason;
  readonly message: string;
  readonly isStalled: boolean;
}

export function statusOf(view: WorkspaceView, outcome: Outcome): WorkspaceStatus {
  const { workspace } = view;
  const { status: before, metadata } = workspace;
  if (outcome.kind === "unchanged") return before ?? {};
  const { ready, reason, message, isStalled } = verdictOn(outcome);
  const generation = metadata.generation ?? 0;
  const condition = (type: "Ready" | "Stalled", holds: boolean): Condition => {
    const status = holds ? "True" : "False";
    const known = before?.conditions?.find((each) => each.type === type);
    const lastTransitionTime = known?.status === status ? known.lastTransitionTime : timestamp(view.now);
    return { type, status, reason, message: clipped(message), lastTransitionTime, observedGeneration: generation };
  };
  const address = addressAfter(workspace, outcome);
  const pulumiVersion = (outcome.kind === "ready" ? outcome.pulumiVersion : undefined) ?? before?.pulumiVersion;
  const warning = outcome.kind === "ready" ? outcome.warning?.message : before?.warning;
  return {
    observedGeneration: generation,
    ...(address !== undefined && { address }),
    ...(pulumiVersion !== undefined && { pulumiVersion }),
    ...(warning !== undefined && { warning: clipped(warning) }),
    conditions: [condition("Ready", ready), ...(isStalled ? [condition("Stalled", true)] : [])],
  };
}

const notYet = (reason: WorkspaceReason, message: string): Verdict => ({
  ready: false,
  reason,
  message,
  isStalled: false,
});
const stalled = (reason: WorkspaceReason, message: string): Verdict => ({
  ready: false,
  reason,
  message,
  isStalled: true,
});
const good = (message: string): Verdict => ({ ready: true, reason: "Succeeded", message, isStalled: false });

type Said = Exclude<Outcome, { kind: "unchanged" }>;

function verdictOn(outcome: Said): Verdict {
  switch (outcome.kind) {
    case "deleting":
      return notYet("Deleting", "the workspace is being deleted");
    case "refused":
      return stalled("InitializationFailed", outcome.message);
    case "blocked":
      return stalled(ownershipConflict, outcome.message);
    case "waiting":
      return notYet("WaitingForReplicas", outcome.message);
    case "rolling":
    case "held":
      return notYet("RollingUpdate", outcome.message);
    case "preparing":
      return outcome.phase === "install"
        ? notYet("Installing", "the program's dependencies are being installed")
        : notYet("Initializing", phaseMessages[outcome.phase ?? "source"]);
    case "failed":
      return failureVerdict(outcome.failure);
    case "unreachable":
      return notYet("ConnectionFailed", `the pod's agent does not answer: ${outcome.message}`);
    case "nodeLost":
      return stalled("NodeLost", outcome.message);
    case "ready":
      return good(
        outcome.warning ? `the workspace is prepared; but ${outcome.warning.message}` : "the workspace is prepared",
      );
    case "asleep":
      return good("the workspace is asleep, without a pod; an Update or a change of its spec wakes it");
    default:
      return assertNever(outcome);
  }
}

const phaseMessages = {
  source: "the program is being fetched",
  stack: "the stack is being selected",
  config: "the stack is being configured",
} as const;

type Failure = Extract<Outcome, { kind: "failed" }>["failure"];

function failureVerdict(failure: Failure): Verdict {
  const message = [failure.message, ...failure.lines].join("\n");
  if (failure.reason === "versionTooLow") return stalled("IncompatibleConfiguration", message);
  const reason = failure.phase === "install" ? "InstallationFailed" : "InitializationFailed";
  return isTransient(failure) ? notYet(reason, message) : stalled(reason, message);
}

/** Only while a prepared pod is up; a run that a change waits for goes on there. */
function addressAfter({ status }: Workspace, outcome: Outcome): string | undefined {
  if (outcome.kind === "ready") return outcome.address;
  return outcome.kind === "held" ? status?.address : undefined;
}

/** Whether there is anything to write. */
export function isSameStatus(a: WorkspaceStatus | undefined, b: WorkspaceStatus): boolean {
  return a !== undefined && Bun.deepEquals(normal(a), normal(b));
}

function normal({ conditions = [], ...rest }: WorkspaceStatus): object {
  return { ...rest, conditions: conditions.toSorted((a, b) => (a.type < b.type ? -1 : 1)) };
}

interface WorkspaceEvent {
  readonly type: EventType;
  readonly reason: AutoEvent | "PodStuck" | Warning["reason"];
  readonly message: string;
}

/** What is worth an event, once: status says something that it did not say before. */
export function eventOf(view: WorkspaceView, outcome: Outcome): WorkspaceEvent | undefined {
  const event = noteOf(outcome);
  const before = readyOf(view.workspace);
  if (!event || outcome.kind === "unchanged") return undefined;
  const { reason, message } = verdictOn(outcome);
  return before?.reason === reason && before.message === clipped(message) ? undefined : event;
}

const warn = (reason: WorkspaceEvent["reason"], message: string): WorkspaceEvent => ({
  type: "Warning",
  reason,
  message,
});

function noteOf(outcome: Outcome): WorkspaceEvent | undefined {
  switch (outcome.kind) {
    case "refused":
      return warn("StackInitializationFailure", outcome.message);
    case "blocked":
      return warn("OwnershipConflict", outcome.message);
    case "failed":
      return failureEvent(outcome.failure);
    case "unreachable":
      return warn("ConnectionFailure", outcome.message);
    case "nodeLost":
      return warn("NodeLost", outcome.message);
    case "waiting":
      return outcome.isStuck ? warn("PodStuck", outcome.message) : undefined;
    case "ready":
      return outcome.warning
        ? warn(outcome.warning.reason, outcome.warning.message)
        : { type: "Normal", reason: "Initialized", message: "the workspace is prepared" };
    case "deleting":
    case "rolling":
    case "held":
    case "preparing":
    case "asleep":
    case "unchanged":
      return undefined;
    default:
      return assertNever(outcome);
  }
}

function failureEvent({ phase, message }: Failure): WorkspaceEvent {
  return warn(phase === "install" ? "InstallationFailure" : "StackInitializationFailure", message);
}

/** A condition holds 32,768 characters; nobody reads as many. */
const longestMessage = 4000;

const clipped = (message: string): string => truncate(message, longestMessage);

/** Kubernetes' Time has whole seconds. */
function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
