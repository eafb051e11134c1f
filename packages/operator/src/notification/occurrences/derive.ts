/** Derives occurrences from the statuses of Stacks and Updates. Pure: the same status has the same occurrences. */
import {
  isComplete,
  updateTypes,
  type Condition,
  type OccurrenceKind,
  type Stack,
  type StackReason,
  type Update,
} from "@pko/api";

import { findCondition, isConditionTrue } from "../../shared/objects/conditions.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { isPullRequestPreview } from "../../shared/pull-request-preview.ts";
import { isWithdrawn } from "../../shared/updates.ts";
import { occurrence, type Occurrence } from "./occurrence.ts";

/** None, or the end of the operation. `stack` is that of the Update, if it is known. */
export function occurrencesOfUpdate(update: Update, stack?: Stack): Occurrence[] {
  const kind = isComplete(update) && !isReplacedPreview(update, stack) ? endKind(update) : undefined;
  // Not the end time, which is the agent's: the operator may learn of the end much later.
  const time = timeOf(findCondition(update, "Complete"));
  const { metadata, spec, status } = update;
  const { type: operation = "", workspaceName = "" } = spec ?? {};
  if (!kind || time === undefined || !isObjectName(workspaceName) || !isOperation(operation)) return [];
  const { permalink } = status ?? {};
  return [
    occurrence(
      { uid: metadata.uid ?? "" },
      {
        kind,
        time,
        stack: workspaceName,
        operation,
        update: metadata.name ?? "",
        message: endMessage(update),
        ...(permalink !== undefined && { permalink }),
      },
    ),
  ];
}

/** Both are free texts in an Update that a user created, and messages contain commands with the name. */
const isObjectName = (text: string): boolean => /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(text);
const isOperation = (text: string): boolean => updateTypes.some((type) => type === text);

/** Undefined for what only prepares something else, such as the plan for an approval, and for what never ran. */
function endKind(update: Update): OccurrenceKind | undefined {
  const { type, previewOnly = false, savePlan = false } = update.spec ?? {};
  // The condition Drifted of the Stack shows the result.
  if (type === "refresh" && previewOnly) return undefined;
  if (isConditionTrue(update, "Failed")) {
    if (isWithdrawn(update)) return undefined;
    return isPreview(update) ? "PreviewFailed" : "UpdateFailed";
  }
  if (isPreview(update)) return savePlan ? undefined : "PreviewSucceeded";
  return type === "destroy" ? "Destroyed" : "UpdateSucceeded";
}

/** The operator cancels the preview of a pull request that was pushed to or closed, which nobody has to look into. */
const isReplacedPreview = (update: Update, stack: Stack | undefined): boolean =>
  isPreview(update) &&
  findCondition(update, "Failed")?.reason === "Canceled" &&
  stack !== undefined &&
  isPullRequestPreview(stack);

const isPreview = ({ spec }: Update): boolean => spec?.type === "preview" || spec?.previewOnly === true;

const endMessage = (update: Update): string =>
  isConditionTrue(update, "Failed")
    ? (findCondition(update, "Failed")?.message ?? "")
    : (update.status?.summary ?? "no changes");

/** The states of a Stack that need attention. A state is reported when it begins. */
export function occurrencesOfStack(stack: Stack): Occurrence[] {
  const states = [stalled(stack), awaitingApproval(stack), drifted(stack)];
  return states.flatMap((state) => stateOccurrence(stack, state));
}

interface State {
  readonly kind: OccurrenceKind;
  readonly since: string | undefined;
  readonly message: string;
  readonly update?: string;
}

function stateOccurrence({ metadata }: Stack, state: State | undefined): Occurrence[] {
  const time = parseTimestamp(state?.since);
  if (!state || time === undefined) return [];
  const { kind, since = "", message, update } = state;
  const facts = { kind, time, stack: metadata.name ?? "", message, ...(update !== undefined && { update }) };
  return [occurrence({ uid: metadata.uid ?? "", at: since }, facts)];
}

/** The failed Update is reported itself, and whoever deletes a namespace knows. */
const reportedElsewhere: ReadonlySet<string> = new Set<StackReason<"Stalled">>([
  "UpdateFailed",
  "UpdateConflict",
  "NamespaceTerminating",
]);

function stalled(stack: Stack): State | undefined {
  const condition = findCondition(stack, "Stalled");
  if (condition?.status !== "True" || reportedElsewhere.has(condition.reason)) return undefined;
  const { reason, message, lastTransitionTime: since } = condition;
  return { kind: "Stalled", since, message: `${reason}: ${message}` };
}

function awaitingApproval({ status }: Stack): State | undefined {
  const { approval, waiting } = status ?? {};
  if (approval?.state !== "Pending" || !waiting) return undefined;
  const isAwaited = status?.conditions?.some(
    ({ reason }) => reason === ("AwaitingApproval" satisfies StackReason<"Reconciling">),
  );
  if (!isAwaited) return undefined;
  const { summary: message, updateName: update } = approval;
  return { kind: "AwaitingApproval", since: waiting.since, message, update };
}

function drifted(stack: Stack): State | undefined {
  const condition = findCondition(stack, "Drifted");
  if (!condition || condition.status === "False") return undefined;
  const { message, lastTransitionTime: since } = condition;
  if (condition.status === "Unknown") return { kind: "DriftCheckFailed", since, message };
  return { kind: "Drifted", since, message: stack.status?.drift?.summary ?? message };
}

const timeOf = (condition: Condition | undefined): number | undefined => parseTimestamp(condition?.lastTransitionTime);
