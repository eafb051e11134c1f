/** The state of a Stack or an Update in one word, as the command line and the console show it. Pure. */
import { stackConditions, type StackReason } from "../conditions.ts";
import type { Stack, Update } from "../kinds.ts";
import type { Condition } from "../shared/condition.ts";
import type { StackSpec } from "./spec.ts";
import { withoutPassword } from "../without-password.ts";

export const stackStates = ["Failing", "Waiting", "Working", "Unknown", "Drifted", "Ready"] as const;
export type StackState = (typeof stackStates)[number];

export const conditionOf = (
  object: { readonly status?: { readonly conditions?: readonly Condition[] } } | undefined,
  type: string,
): Condition | undefined => object?.status?.conditions?.find((condition) => condition.type === type);

/** The condition that shows why the Stack is as it is: Stalled or Reconciling, or else Ready. */
export function decidingCondition(stack: Stack): Condition | undefined {
  return ["Stalled", "Reconciling", "Ready"]
    .map((type) => conditionOf(stack, type))
    .find((condition) => condition !== undefined && (condition.type === "Ready" || condition.status === "True"));
}

const reconcilingStates: Readonly<Record<StackReason<"Reconciling">, StackState>> = {
  StackProcessing: "Working",
  RetryingAfterFailure: "Failing",
  PreviewFailed: "Failing",
  PrerequisiteNotSatisfied: "Waiting",
  AwaitingApproval: "Waiting",
  Suspended: "Waiting",
  OutsideUpdateWindow: "Waiting",
  WaitingForSlot: "Waiting",
  WaitingForDependents: "Waiting",
};

const isReconcilingReason = (reason: string): reason is StackReason<"Reconciling"> =>
  reason in stackConditions.Reconciling;

export function stateOf(stack: Stack): StackState {
  const condition = decidingCondition(stack);
  if (!condition) return "Unknown";
  if (condition.type === "Stalled") return "Failing";
  if (condition.type === "Reconciling") {
    return isReconcilingReason(condition.reason) ? reconcilingStates[condition.reason] : "Working";
  }
  if (condition.status !== "True") return "Unknown";
  return conditionOf(stack, "Drifted")?.status === "True" ? "Drifted" : "Ready";
}

const urgency: readonly StackState[] = ["Failing", "Waiting", "Unknown", "Working", "Drifted", "Ready"];

/** Those that need attention first, then by namespace and name. */
export function byUrgency(a: Ranked, b: Ranked): number {
  return (
    urgency.indexOf(a.state) - urgency.indexOf(b.state) ||
    a.namespace.localeCompare(b.namespace) ||
    a.name.localeCompare(b.name)
  );
}

interface Ranked {
  readonly state: StackState;
  readonly namespace: string;
  readonly name: string;
}

export function describeSource(spec: StackSpec): string {
  const { projectRepo, branch, tag, commit, repoDir, fluxSource, programRef, workspaceTemplate } = spec;
  if (projectRepo) {
    const revision = tag ?? branch ?? commit ?? "";
    return [withoutPassword(projectRepo), revision, repoDir].filter(Boolean).join(" ");
  }
  if (fluxSource) return `${fluxSource.sourceRef.kind} ${fluxSource.sourceRef.name}`;
  if (programRef) return `Program ${programRef.name}`;
  const dir = workspaceTemplate?.spec?.local?.dir;
  return dir === undefined ? "the workspace template" : `${dir} in the workspace's image`;
}

export type UpdateState = "waiting" | "running" | "succeeded" | "failed";

export function updateState({ status = {} }: Pick<Update, "status">): UpdateState {
  if (conditionOf({ status }, "Failed")?.status === "True") return "failed";
  if (conditionOf({ status }, "Complete")?.status === "True") return "succeeded";
  return status.startTime === undefined ? "waiting" : "running";
}

/** The newest first. */
export function byCreation(a: Pick<Update, "metadata">, b: Pick<Update, "metadata">): number {
  const created = ({ metadata }: Pick<Update, "metadata">): string => metadata.creationTimestamp ?? "";
  return created(b).localeCompare(created(a)) || (b.metadata.name ?? "").localeCompare(a.metadata.name ?? "");
}
