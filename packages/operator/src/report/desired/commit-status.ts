/** The status of the commit that an Update deploys or previews. Pure. */
import type { Update, UpdateReport } from "@pko/api";
import type { CommitStatus } from "@pko/forge";

import { changeSummary, riskOrder } from "../../shared/changes.ts";
import { contentHash, textHash } from "../../shared/digest.ts";
import { findCondition, isConditionTrue } from "../../shared/objects/conditions.ts";
import {
  closedWithoutResult,
  isDeleting,
  movedWithoutResult,
  parentOf,
  previewContext,
} from "../../shared/pull-request-preview.ts";
import * as messages from "../messages.ts";
import type { PlanFate, Subject } from "../view.ts";

export type ReportedState = NonNullable<UpdateReport["state"]>;

type Fate = Partial<Pick<Subject, "plan" | "isAbandoned" | "pullRequest" | "stack" | "commit">>;

export function reportedState(update: Update, fate: Fate): ReportedState {
  const { plan } = fate;
  if (lacksResult(update, fate)) return "error";
  if (isConditionTrue(update, "Failed")) return "failure";
  if (isConditionTrue(update, "Complete")) return plan ? planState(plan) : "success";
  return update.status?.startTime === undefined ? "pending" : "running";
}

const endsWithoutResult: ReadonlySet<string | undefined> = new Set(["Canceled", "Aborted", "Unknown"]);

export const hasResult = (update: Update): boolean =>
  isConditionTrue(update, "Complete") && !endsWithoutResult.has(findCondition(update, "Failed")?.reason);

/** A preview of a pull request that was interrupted, or cancelled because of a push, has not failed. */
function lacksResult(update: Update, { isAbandoned = false, pullRequest }: Fate): boolean {
  if (hasResult(update)) return false;
  const isPullRequest = pullRequest !== undefined && operationOf(update) === "preview";
  return isAbandoned || (isPullRequest && isConditionTrue(update, "Complete"));
}

function planState(plan: PlanFate): ReportedState {
  switch (plan.kind) {
    case "open":
      return "pending";
    case "rejected":
      return "failure";
    case "superseded":
      return "error";
    case "applied":
      return reportedState(plan.by, {});
  }
}

export const isPreview = ({ spec }: Update): boolean => spec?.type === "preview";
/** A plan for an approval is made for an update. */
export const operationOf = (update: Update): "preview" | "update" =>
  isPreview(update) && !update.spec?.savePlan ? "preview" : "update";

export function commitStatus({
  update,
  subject,
}: {
  readonly update: Update;
  readonly subject: Subject;
}): CommitStatus {
  const url = linkOf(update, subject);
  return {
    context: contextOf(subject),
    state: reportedState(update, subject),
    description: descriptionOf(update, subject),
    ...(url !== undefined && { url }),
  };
}

function contextOf({ stack, pullRequest }: Subject): string {
  const { namespace = "", name = "" } = stack.metadata;
  const parent = pullRequest === undefined ? undefined : parentOf(stack);
  return parent ? previewContext(namespace, parent.name) : `pulumi/${namespace}/${name}`;
}

function descriptionOf(update: Update, fate: Fate): string {
  const { plan, ...ofUpdate } = fate;
  const summary = changeSummary(update.status?.changes ?? {}, { isPreview: isPreview(update), order: riskOrder });
  if (plan && isConditionTrue(update, "Complete")) return planText(plan, summary);
  switch (reportedState(update, ofUpdate)) {
    case "pending":
      return messages.waiting;
    case "running":
      return operationOf(update) === "preview" ? messages.runningPreview : messages.runningUpdate;
    case "success":
      return summary;
    case "failure":
      return failureText(update, summary);
    case "error":
      return noResultText(update, fate);
  }
}

function planText(plan: PlanFate, summary: string): string {
  switch (plan.kind) {
    case "open":
      return messages.awaitingApproval(summary);
    case "rejected":
      return messages.planRejected;
    case "superseded":
      return messages.planSuperseded;
    case "applied":
      return descriptionOf(plan.by, {});
  }
}

function failureText(update: Update, summary: string): string {
  const isCancelled = findCondition(update, "Failed")?.reason === "Canceled";
  const errorClass = update.status?.errorClass ?? (isCancelled ? "cancelled" : undefined);
  const text = messages.failed(operationOf(update), errorClass);
  return update.status?.changes ? `${text}; ${summary}` : text;
}

/** The head of a pull request that was pushed and then closed is not reported again. */
function noResultText(update: Update, { isAbandoned, stack, commit }: Fate): string {
  if (isAbandoned) return messages.abandoned;
  const head = stack?.spec.commit ?? commit;
  if (head !== commit) return movedWithoutResult;
  if (stack && isDeleting(stack)) return closedWithoutResult;
  return findCondition(update, "Failed")?.reason === "Canceled" ? messages.cancelled : messages.interrupted;
}

/** The page of the run: in the console, otherwise in Pulumi Cloud. */
export function linkOf({ metadata, status }: Update, { settings }: Subject): string | undefined {
  const { namespace = "", name = "" } = metadata;
  if (settings.consoleURL !== undefined)
    return `${settings.consoleURL.replace(/(?<!\/)\/+$/, "")}/runs/${namespace}/${name}`;
  const permalink = URL.parse(status?.permalink ?? "");
  return permalink?.protocol === "https:" ? permalink.href : undefined;
}

/** Only previews of pull requests. The comment shows the last one with a result. */
export const isCommentDue = (update: Update, { pullRequest }: Subject): boolean =>
  pullRequest !== undefined && operationOf(update) === "preview" && hasResult(update);

/** The comment of a later preview must not be replaced, however late this report arrives. */
export const isCommentSent = (update: Update, subject: Subject): boolean =>
  isCommentDue(update, subject) && !subject.isCommentOutdated;

/** Nobody can guess it before it is published, so nobody can publish a comment with it before the operator does. */
export function markerOf({ stack, pullRequest = 0 }: Subject): string {
  const uid = parentOf(stack)?.uid ?? stack.metadata.uid ?? "";
  return `pulumi:${textHash(`comment ${uid} ${pullRequest}`, 32)}`;
}

/**
 * Of everything that the report depends on: the record of a run that has ended does not change. Whether the comment is outdated is
 * left out, so that a new preview does not cause another report about the earlier ones.
 */
export function reportDigest(update: Update, subject: Subject): string {
  const { target, commit, pullRequest } = subject;
  const comment = isCommentDue(update, subject) ? { pullRequest, uid: update.metadata.uid } : {};
  return contentHash({ target, commit, status: commitStatus({ update, subject }), comment });
}
