/** The part of a Stack's status that is about pull requests. Pure. The Stack controller leaves it as it is. */
import { maxPullRequestLimit, type Condition, type PullRequestPreview, type Stack, type StackStatus } from "@pko/api";
import type { PullRequest } from "@pko/forge";

import { conditionAt, isConditionTrue } from "../shared/objects/conditions.ts";
import { pullRequestNumberOf } from "../shared/pull-request-preview.ts";
import { truncate } from "../shared/truncate.ts";
import type { Outcome } from "./outcome.ts";
import { previewNameOf } from "./preview-stack.ts";
import type { PullRequestsPlan } from "./steps.ts";
import type { PullRequestsView } from "./view.ts";

const conditionType = "PullRequestsPreviewed";
const longestMessage = 4096;

export function pullRequestsStatus(
  view: PullRequestsView,
  { outcome }: Pick<PullRequestsPlan, "outcome">,
): StackStatus {
  const { pullRequests: before = [], cancelledPreviews = [], conditions = [], ...rest } = view.stack.status ?? {};
  const others = conditions.filter(({ type }) => type !== conditionType);
  switch (outcome.kind) {
    case "unchanged":
      return view.stack.status ?? {};
    case "off":
      return { ...rest, conditions: others };
    case "waiting":
    case "failing":
    case "previewing": {
      const pullRequests =
        outcome.kind === "previewing" ? currentPreviews(view, outcome, before) : withStates(view, before);
      const cancelled = outcome.kind === "previewing" ? [...outcome.cancelled] : cancelledPreviews;
      return {
        ...rest,
        ...(pullRequests.length > 0 && { pullRequests }),
        ...(cancelled.length > 0 && { cancelledPreviews: cancelled }),
        conditions: [...others, conditionFor(view, outcome)],
      };
    }
  }
}

function conditionFor(
  { stack, now }: PullRequestsView,
  outcome: Exclude<Outcome, { kind: "unchanged" | "off" }>,
): Condition {
  const shown = (status: Condition["status"], reason: string, message: string): Condition =>
    conditionAt(stack, { type: conditionType, status, reason, message: truncate(message, longestMessage) }, now);
  switch (outcome.kind) {
    case "waiting":
      return shown("Unknown", outcome.reason, outcome.message);
    case "failing":
      return shown("False", outcome.reason, outcome.message);
    case "previewing":
      return outcome.blocked === undefined
        ? shown("True", "PreviewsCurrent", outcome.message)
        : shown("False", "PreviewsBlocked", outcome.blocked);
  }
}

function currentPreviews(
  view: PullRequestsView,
  { selected, kept }: Extract<Outcome, { kind: "previewing" }>,
  before: readonly PullRequestPreview[],
): PullRequestPreview[] {
  const others = before.filter(({ number }) => kept.includes(number));
  return [...previewsOf(view, selected), ...withStates(view, others)].slice(0, maxPullRequestLimit);
}

function previewsOf(view: PullRequestsView, selected: readonly PullRequest[]): PullRequestPreview[] {
  const { name = "" } = view.stack.metadata;
  return selected.map(({ number, url, head: { commit } }) => ({
    number,
    ...(url && { url: truncate(url, 1024) }),
    commit,
    stack: previewNameOf(name, number),
    state: stateIn(view, { number, commit }),
  }));
}

const withStates = (view: PullRequestsView, before: readonly PullRequestPreview[]): PullRequestPreview[] =>
  before.map((preview) => ({ ...preview, state: stateIn(view, preview) }));

function stateIn(
  { previews, blocked }: PullRequestsView,
  { number, commit }: Pick<PullRequestPreview, "number" | "commit">,
): PullRequestPreview["state"] {
  if (blocked?.has(number)) return "Blocked";
  const preview = previews.find((each) => pullRequestNumberOf(each) === number);
  return preview?.spec.commit === commit ? stateOfPreview(preview) : "Pending";
}

/** Of the commit in its spec. */
function stateOfPreview(preview: Stack): PullRequestPreview["state"] {
  const { metadata, spec, status = {} } = preview;
  const { currentUpdate, lastUpdate } = status;
  if (currentUpdate?.commit === spec.commit) return "Running";
  const isCurrent = lastUpdate?.generation === metadata.generation && lastUpdate?.lastAttemptedCommit === spec.commit;
  if (isCurrent && lastUpdate?.state === "succeeded") return "Succeeded";
  if (isCurrent && lastUpdate?.state === "failed") return "Failed";
  const isObserved = status.observedGeneration === metadata.generation;
  return isObserved && isConditionTrue(preview, "Stalled") ? "Failed" : "Pending";
}
