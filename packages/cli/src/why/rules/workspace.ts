/** Rules about the workspace: its pod, its preparation and its node. */
import type { ContainerStatus } from "kubernetes-types/core/v1";

import { conditionOf } from "../../stacks/summary.ts";
import type { CauseCode } from "../cause.ts";
import type { StackFacts } from "../facts.ts";
import { next, summaries } from "../messages.ts";
import { conditionWith, decide, isReady, messageIn, retryOf, type Rule } from "./rule.ts";

export const nodeLost: Rule = (facts) =>
  conditionWith(facts, "NodeLost")
    ? decide("nodeLost", { summary: summaries.nodeLost(facts), message: messageIn(facts), next: [next.node] })
    : undefined;

export const classConflict: Rule = (facts) =>
  conditionWith(facts, "WorkspaceClassConflict")
    ? decide("classConflict", {
        summary: summaries.classConflict(facts),
        message: messageIn(facts),
        next: [next.classes],
      })
    : undefined;

export const classLimitExceeded: Rule = (facts) =>
  conditionWith(facts, "WorkspaceClassLimitExceeded")
    ? decide("classLimitExceeded", {
        summary: summaries.classLimitExceeded(facts),
        message: messageIn(facts),
        next: [next.classLimit, next.edit(facts)],
      })
    : undefined;

export const versionTooLow: Rule = (facts) =>
  conditionWith(facts, "PulumiVersionTooLow")
    ? decide("versionTooLow", {
        summary: summaries.versionTooLow(facts),
        message: messageIn(facts),
        next: [next.newImage],
      })
    : undefined;

export const quotaExceeded: Rule = (facts) =>
  !isReady(facts) && workspaceMessages(facts).some((message) => message.includes("exceeded quota"))
    ? decide("quotaExceeded", {
        summary: summaries.quotaExceeded(facts),
        message: firstWith(facts, "exceeded quota"),
        next: [next.quota(facts), ...retryOf(facts)],
      })
    : undefined;

/** What the Stack and its Workspace report while the workspace is not ready. */
function workspaceMessages(facts: StackFacts): string[] {
  const stack = conditionWith(
    facts,
    "WorkspaceFailed",
    "StackProcessing",
    "SpecInvalid",
    "UpdateFailed",
    "OutputsLost",
  )?.message;
  const ready = conditionOf(facts.workspace, "Ready");
  const workspace = ready?.status === "False" ? ready.message : undefined;
  return [stack, workspace].filter((message) => message !== undefined);
}

const firstWith = (facts: StackFacts, part: string): string =>
  workspaceMessages(facts).find((message) => message.includes(part)) ?? "";

/** As the API server describes it. */
const missingAccount = /serviceaccount "([^"]+)" not found/;

export const serviceAccountMissing: Rule = (facts) => {
  const message = workspaceMessages(facts).find((each) => missingAccount.test(each));
  const [, account = ""] = missingAccount.exec(message ?? "") ?? [];
  return message !== undefined && isWaitingForPod(facts)
    ? decide("serviceAccountMissing", {
        summary: summaries.serviceAccountMissing(facts),
        message,
        next: [next.serviceAccount(facts, account), ...retryOf(facts)],
      })
    : undefined;
};

const isWaitingForPod = (facts: StackFacts): boolean =>
  conditionWith(facts, "WorkspaceFailed", "StackProcessing") !== undefined;

/** As workspace/pod/explain-pod.ts and workspace/messages.ts of the operator describe a pod. */
const reported: readonly (readonly [CauseCode, RegExp])[] = [
  ["podRejected", /admission rejected the pod|pods "\S+" is forbidden/],
  ["podUnschedulable", /no node can take the pod/],
  ["imageNotPulled", /the image \S+ (?:cannot be pulled|is not on the node)|is not the name of an image/],
  ["podCrashing", /keeps crashing|the container \S+ has terminated|the pod was evicted|the pod failed/],
  ["podNotStarting", /the container \S+ cannot be (?:created|started)/],
  ["agentUnreachable", /the pod's agent does not respond/],
];

/** The pod itself, if the user may see it: it may be newer than what the operator has reported. */
export const podStuck: Rule = (facts) => {
  if (!isWaitingForPod(facts)) return undefined;
  const seen = podProblem(facts);
  const [code, message] = seen ?? reportedProblem(facts) ?? [];
  if (code === undefined) return undefined;
  return decide(code, {
    summary: podSummaries[code](facts),
    message,
    next: [...podFixes[code], next.pod(facts), ...retryOf(facts)],
  });
};

function reportedProblem(facts: StackFacts): readonly [PodCode, string] | undefined {
  for (const message of workspaceMessages(facts)) {
    const [code] = reported.find(([, pattern]) => pattern.test(message)) ?? [];
    if (code !== undefined && isPodCode(code)) return [code, message];
  }
  return undefined;
}

const podSummaries = {
  podRejected: summaries.podRejected,
  podUnschedulable: summaries.podUnschedulable,
  imageNotPulled: summaries.imageNotPulled,
  podCrashing: summaries.podCrashing,
  podNotStarting: summaries.podNotStarting,
  agentUnreachable: summaries.agentUnreachable,
} as const;
type PodCode = keyof typeof podSummaries;
const isPodCode = (code: CauseCode): code is PodCode => code in podSummaries;

const podFixes: Readonly<Record<PodCode, readonly string[]>> = {
  podRejected: [next.rejected],
  podUnschedulable: [next.capacity],
  imageNotPulled: [next.image],
  podCrashing: [],
  podNotStarting: [],
  agentUnreachable: [next.network],
};

function podProblem({ pod }: StackFacts): readonly [PodCode, string] | undefined {
  if (!pod || pod.metadata.deletionTimestamp !== undefined) return undefined;
  const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status === "False" && scheduled.reason === "Unschedulable") {
    return ["podUnschedulable", scheduled.message ?? ""];
  }
  const containers = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  return containers.map(containerProblem).find((problem) => problem !== undefined);
}

const waitingCodes: Readonly<Record<string, PodCode>> = {
  ErrImagePull: "imageNotPulled",
  ImagePullBackOff: "imageNotPulled",
  ErrImageNeverPull: "imageNotPulled",
  InvalidImageName: "imageNotPulled",
  CrashLoopBackOff: "podCrashing",
  CreateContainerConfigError: "podNotStarting",
  CreateContainerError: "podNotStarting",
  RunContainerError: "podNotStarting",
};

function containerProblem({ name, image, state, lastState }: ContainerStatus): readonly [PodCode, string] | undefined {
  const { reason = "", message = "" } = state?.waiting ?? {};
  const code = waitingCodes[reason];
  if (code === undefined) return undefined;
  const end = lastState?.terminated;
  const details = [message, end?.reason, end?.message].filter(Boolean).join(": ");
  return [code, `Container ${name}, image ${image}: ${reason}${details && `: ${details}`}`];
}

/** As the agent describes a stack that it may not create. */
const missingStack = /the stack does not exist; create it/;

export const workspaceFailed: Rule = (facts) => {
  const condition = conditionWith(facts, "WorkspaceFailed");
  if (!condition) return undefined;
  if (missingStack.test(condition.message)) {
    return decide("stackNotFound", {
      summary: summaries.stackNotFound(facts),
      message: condition.message,
      next: [next.createPulumiStack, ...retryOf(facts)],
    });
  }
  const isInstallation = conditionOf(facts.workspace, "Ready")?.reason === "InstallationFailed";
  const code = isInstallation ? "installationFailed" : "workspaceFailed";
  return decide(code, {
    summary: summaries[code](facts),
    message: messageIn(facts),
    next: [next.logs(facts), ...retryOf(facts)],
  });
};
