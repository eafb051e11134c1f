/** Rules about the running and the last update. */
import { relative } from "../../output/time.ts";
import type { StackFacts } from "../facts.ts";
import { failureTexts, next, summaries } from "../messages.ts";
import { conditionWith, decide, messageIn, retryOf, type Rule } from "./rule.ts";

export const locked: Rule = (facts) => {
  const isConflict =
    conditionWith(facts, "UpdateConflict") ??
    (hasFailed(facts) && facts.stack?.status?.lastUpdate?.failure === "conflict" ? true : undefined);
  return isConflict
    ? decide("locked", {
        summary: summaries.locked(facts),
        message: messageIn(facts),
        next: ["Wait for the other update.", next.unlock(facts), ...retryOf(facts)],
      })
    : undefined;
};

const hasFailed = (facts: StackFacts): boolean =>
  conditionWith(facts, "RetryingAfterFailure", "PreviewFailed", "UpdateFailed", "RetriesExhausted") !== undefined;

/** By the class of the failure, which docs/troubleshooting.md lists. */
const failureCodes: Readonly<Record<string, keyof typeof failureTexts>> = {
  invalidToken: "credentialsRejected",
  pendingOperations: "pendingOperations",
  pluginMissing: "pluginMissing",
  policyViolation: "policyViolation",
  stackNotFound: "stackNotFound",
  planUnreadable: "planNotApplied",
  planMismatch: "planNotApplied",
  planStale: "planNotApplied",
  planChanged: "planNotApplied",
  planStopped: "planNotApplied",
  unexpectedChanges: "unexpectedChanges",
  timedOut: "timedOut",
  cancelled: "cancelled",
  interrupted: "interrupted",
  programError: "programError",
};

const fixes: Readonly<Record<keyof typeof failureTexts, readonly string[]>> = {
  credentialsRejected: [next.token],
  pendingOperations: [next.pending],
  pluginMissing: [next.plugin],
  policyViolation: [next.program],
  stackNotFound: [next.createPulumiStack],
  planNotApplied: ["The next attempt makes a new plan, which has to be approved again."],
  unexpectedChanges: ["Review the drift, then run once without expectNoRefreshChanges."],
  timedOut: ["Raise updateTimeoutSeconds or silenceTimeoutSeconds, or find out why the update hangs."],
  cancelled: [],
  interrupted: ["If memory was the cause, raise workspaceTemplate.spec.resources.limits.memory."],
  programError: [next.program],
  updateFailed: [],
};

export const updateFailed: Rule = (facts) => {
  const last = facts.stack?.status?.lastUpdate;
  if (!hasFailed(facts) || !last) return undefined;
  const code = failureCodes[last.failure ?? ""] ?? "updateFailed";
  const why = failureTexts[code];
  const exhausted = conditionWith(facts, "RetriesExhausted") ? ["It is not retried."] : [];
  return decide(code, {
    summary: `${summaries.failed(facts, last.type ?? "update")}${why && `, ${why}`}.`,
    message: withFailures(last.message ?? messageIn(facts), facts),
    next: [...fixes[code], ...exhausted, next.reconcile(facts), ...retryOf(facts)],
  });
};

/** The record names the resources; the message has only the text of the error. */
function withFailures(message: string, { failures = [] }: StackFacts): string {
  return failures.length === 0 ? message : [message, "", "Resources that failed:", ...failures].join("\n");
}

export const updateRunning: Rule = (facts) => {
  const current = facts.stack?.status?.currentUpdate?.name;
  if (!conditionWith(facts, "StackProcessing") || current === undefined) return undefined;
  const update = facts.updates.find(({ metadata }) => metadata.name === current);
  const startTime = update?.status?.startTime;
  if (update && startTime === undefined) return undefined;
  return decide("updateRunning", {
    summary: summaries.updateRunning(facts, update?.spec?.type ?? "", relative(startTime, facts.now)),
    message: messageIn(facts),
    next: [next.waitFor(facts)],
  });
};

export const workspacePreparing: Rule = (facts) =>
  conditionWith(facts, "StackProcessing")
    ? decide("workspacePreparing", {
        summary: summaries.workspacePreparing(facts),
        message: messageIn(facts),
        next: [next.nothing],
      })
    : undefined;

export const unknown: Rule = (facts) =>
  decide("unknown", { summary: summaries.unknown(facts), message: messageIn(facts), next: [next.logs(facts)] });
