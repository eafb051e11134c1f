/** What to report about an Update: the first rule that applies decides. Pure. */
import { isComplete, type ReportProblem } from "@pko/api";
import type { ForgeErrorKind } from "@pko/forge";
import { firstDecision } from "@pko/kube";

import { jittered } from "../../shared/pauses.ts";
import { temporaryProblems } from "../../shared/reports.ts";
import { commentBody } from "../desired/comment.ts";
import { commitStatus, isCommentSent, markerOf, reportDigest, reportedState } from "../desired/commit-status.ts";
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import type { Report, ReportPlan, Step } from "../steps.ts";
import type { Details, ReportView, Subject } from "../view.ts";

type ReportRule = (view: ReportView) => ReportPlan | undefined;

const unchanged: Outcome = { kind: "unchanged" };
const keep = (requeueAt?: number): ReportPlan => ({
  steps: [],
  outcome: unchanged,
  ...(requeueAt !== undefined && { requeueAt }),
});
const first = (step: Step): ReportPlan => ({ steps: [step], outcome: unchanged });

/** For problems that end by themselves, and for those that somebody has to solve. */
const temporaryPause = { leastMs: 5000, mostMs: 10 * 60_000 };
const lastingPause = { leastMs: 30_000, mostMs: 60 * 60_000 };
/** `ForgeLimits` wakes those that wait. This is for a turn that another Update does not use, because its pass fails. */
const busyPauseMs = 60_000;

const problems: Readonly<Record<ForgeErrorKind, ReportProblem>> = {
  unauthorized: "Unauthorized",
  notFound: "NotFound",
  rateLimited: "RateLimited",
  invalid: "Rejected",
  unavailable: "Unavailable",
};

function failed(
  view: ReportView,
  problem: ReportProblem,
  details: { message: string; retryAfterMs?: number },
): ReportPlan {
  const { leastMs, mostMs } = temporaryProblems.has(problem) ? temporaryPause : lastingPause;
  const { failures = 0 } = view.memory ?? {};
  const growing = Math.min(mostMs, leastMs * 2 ** failures);
  const pause = jittered(Math.max(growing, details.retryAfterMs ?? 0), view.update.metadata.uid ?? "");
  return {
    steps: [],
    outcome: { kind: "failed", problem, message: details.message },
    requeueAt: view.now + pause,
  };
}

function delivered({ update, subject, answer, unrecorded }: ReportView): ReportPlan | undefined {
  const known = answer?.kind === "delivered" ? answer : unrecorded;
  if (!known || !subject || known.digest !== reportDigest(update, subject)) return undefined;
  const { digest, commentID = subject.commentID } = known;
  const outcome: Outcome = {
    kind: "reported",
    digest,
    state: reportedState(update, subject),
    ...(commentID !== undefined && { commentID }),
  };
  return { steps: [], outcome };
}

function notDelivered(view: ReportView): ReportPlan | undefined {
  const { answer } = view;
  if (answer?.kind !== "failed") return undefined;
  const { error, retryAfterMs } = answer;
  const message = messages.notDelivered(error, answer.message);
  return failed(view, problems[error], { message, ...(retryAfterMs !== undefined && { retryAfterMs }) });
}

function nothingToReport({ subject }: ReportView): ReportPlan | undefined {
  return subject ? undefined : keep();
}

function superseded({ subject }: ReportView): ReportPlan | undefined {
  return subject?.isSuperseded ? { steps: [], outcome: { kind: "superseded" } } : undefined;
}

/** Such as a resync of a commit that is deployed: it may be withdrawn, and nobody would report the result again. */
function resultStands({ subject }: ReportView): ReportPlan | undefined {
  return subject?.isVoid ? keep() : undefined;
}

function suspended({ update, subject }: ReportView): ReportPlan | undefined {
  return subject?.isSuspended && !update.status?.report && !update.status?.startTime ? keep() : undefined;
}

function reported({ update, subject }: ReportView): ReportPlan | undefined {
  const { digest, problem } = update.status?.report ?? {};
  return subject && problem === undefined && digest === reportDigest(update, subject) ? keep() : undefined;
}

/** What became of a plan is final, but the status of the Stack shows it only until there is another plan. */
function planSettled({ update, subject }: ReportView): ReportPlan | undefined {
  const { state, problem } = update.status?.report ?? {};
  if (!subject?.plan || state === undefined || problem !== undefined) return undefined;
  return state === "pending" || state === "running" ? undefined : keep();
}

/** A Stack may begin to report when it has a long history, which is of interest to nobody. */
function endedBefore({ update, subject }: ReportView): ReportPlan | undefined {
  return isComplete(update) && !update.status?.report && !subject?.isNamed ? keep() : undefined;
}

/** Before the end, every Update is observed after a restart. The change of the status causes another pass. */
function unrecorded({ update }: ReportView): ReportPlan | undefined {
  return isComplete(update) && !update.status?.report ? { steps: [], outcome: { kind: "due" } } : undefined;
}

function pausing({ now, memory }: ReportView): ReportPlan | undefined {
  return memory && memory.retryAt > now ? keep(memory.retryAt) : undefined;
}

function forgeResting({ now, subject }: ReportView): ReportPlan | undefined {
  const { restUntil = 0 } = subject?.forge ?? {};
  return restUntil > now ? { ...keep(restUntil), outcome: { kind: "resting" } } : undefined;
}

function forgeBusy({ now, subject }: ReportView): ReportPlan | undefined {
  return subject?.forge.isBusy ? { ...keep(now + busyPauseMs), outcome: { kind: "waiting" } } : undefined;
}

function credentialsUnknown({ access }: ReportView): ReportPlan | undefined {
  return access ? undefined : first({ kind: "readCredentials" });
}

function credentialsMissing(view: ReportView): ReportPlan | undefined {
  const { access, subject } = view;
  const name = subject?.settings.secretRef.name ?? "";
  switch (access?.kind) {
    case "missing":
      return failed(view, "SecretMissing", { message: messages.secretMissing(name) });
    case "forbidden":
      return failed(view, "SecretMissing", { message: messages.secretForbidden(name) });
    case "invalid":
      return failed(view, "SecretInvalid", { message: messages.secretInvalid(access.message) });
    case "refused":
      return failed(view, "Unauthorized", { message: messages.appRefused(access.message) });
    case "unavailable":
      return failed(view, "Unavailable", { message: messages.notDelivered("unavailable", access.message) });
    case "found":
    case undefined:
      return undefined;
  }
}

function detailsUnknown({ update, subject, details }: ReportView): ReportPlan | undefined {
  if (details || !subject || !isCommentSent(update, subject)) return undefined;
  return first({ kind: "readDetails" });
}

/** Applies to every view. The rules before it leave an Update with something to report, and everything that it needs. */
function send(view: ReportView): ReportPlan {
  const { subject } = view;
  return subject ? first({ kind: "send", report: reportOf(view, subject) }) : keep();
}

const noDetails: Details = { outputs: [] };

function reportOf({ update, details = noDetails }: ReportView, subject: Subject): Report {
  const report = { digest: reportDigest(update, subject), status: commitStatus({ update, subject }) };
  const { pullRequest } = subject;
  if (pullRequest === undefined || !isCommentSent(update, subject)) return report;
  const body = commentBody({ update, subject, details });
  return { ...report, comment: { pullRequest, marker: markerOf(subject), body } };
}

const rules: readonly ReportRule[] = [
  delivered, // the forge has the report: record it
  notDelivered, // the forge does not have it: record why, and repeat it later
  nothingToReport, // no report is configured, or no commit is known
  superseded, // a later Update reports about the commit
  resultStands, // it has not started, and the commit has a result, or another pull request with the same head has one
  suspended, // nothing has started, and nothing will
  reported, // the forge has this state
  planSettled, // the forge shows what became of the plan
  endedBefore, // it ended before the Stack reported anything
  unrecorded, // it has ended, and nothing is reported: record that, so that a restart does not forget it
  pausing, // an attempt failed: wait
  forgeResting, // the forge does not respond, or limits requests: wait
  forgeBusy, // others of the namespace are calling it: wait for the turn
  credentialsUnknown, // read the Secret
  credentialsMissing, // it cannot be used: record why
  detailsUnknown, // a comment is due: read the record of the run
  send, // set the status of the commit, and write the comment
];

export const planReport = (view: ReportView): ReportPlan => firstDecision(rules, view);
