/** The one place that computes an Update's status. Pure. */
import type { Condition, UpdateConditionType, UpdateReason, UpdateStalledReason, UpdateStatus } from "@pko/api";
import { timestamp } from "@pko/kube";
import type { Progress } from "@pko/records";
import type { RunResult } from "@pko/rpc";

import { conditionAt, withoutMessages } from "../shared/objects/conditions.ts";
import { boundedDrift } from "../shared/drift.ts";
import { truncate } from "../shared/truncate.ts";
import * as messages from "./messages.ts";
import type { Ending, Outcome } from "./outcome.ts";
import {
  conditionMessage,
  pendingOperations,
  progressSummary,
  resultText,
  stdoutOf,
  summaryOf,
} from "./result-text.ts";
import type { UpdateView } from "./view.ts";
import { parseTimestamp } from "../shared/parse-timestamp.ts";

type Reported = Exclude<Outcome, { kind: "unchanged" }>;
type Fields = Omit<UpdateStatus, "observedGeneration" | "conditions">;

export function updateStatus(view: UpdateView, { outcome }: { readonly outcome: Outcome }): UpdateStatus {
  if (outcome.kind === "unchanged") return view.update.status ?? {};
  return {
    observedGeneration: view.update.metadata.generation ?? 0,
    ...statusFields(view, outcome),
    conditions: timed(view, statementsFor(outcome)),
  };
}

/** Before an Update starts, and while it runs, the messages and the counts only describe progress. */
export function withoutProgress(status: UpdateStatus): object {
  const { conditions, progress: _, ...rest } = status;
  const isOpen = conditions?.some(({ type, status: is }) => type === "Complete" && is === "False");
  return isOpen ? { ...rest, conditions: withoutMessages(conditions) } : status;
}

/** The status of an Update that has ended, without the operation's own messages: the API server has rejected them. */
export function statusWithoutMessages(view: UpdateView, ending: Ending): UpdateStatus {
  const { metadata, spec, status } = view.update;
  const isSuccess = ending.reason === "UpdateSucceeded";
  const message = messages.resultRejected(spec?.type ?? "operation", { isSuccess });
  const { startTime, podUid, report } = status ?? {};
  const process = ending.result?.progress.process ?? status?.process;
  const outputs = view.stored?.outputs;
  return {
    observedGeneration: metadata.generation ?? 0,
    ...(startTime !== undefined && { startTime }),
    ...(podUid !== undefined && { podUid }),
    ...(process && { process }),
    endTime: runEndTime(view, ending),
    message,
    ...(ending.result?.error && { errorClass: ending.result.error.class }),
    ...(outputs !== undefined && { outputs }),
    ...(report && { report }),
    conditions: timed(view, endStatements({ reason: ending.reason, message })),
  };
}

/** The status is written as a whole: what was reported before stays unless the outcome replaces it. */
function statusFields(view: UpdateView, outcome: Reported): Fields {
  const kept = keptFields(view);
  const { progress } = view.update.status ?? {};
  switch (outcome.kind) {
    case "waiting":
      return kept;
    case "started":
      return { ...kept, ...projectFields(view), startTime: timestamp(view.now), podUid: outcome.podUid };
    case "stalled":
      return { ...kept, ...(progress && { progress }) };
    case "progressing":
      return { ...kept, ...(outcome.progress ? progressFields(view, outcome.progress) : progress && { progress }) };
    case "ended":
      return { ...kept, ...endFields(view, outcome.ending) };
  }
}

function keptFields(view: UpdateView): Fields {
  const { startTime, podUid, process, permalink, report } = view.update.status ?? {};
  return {
    // The report controller writes it.
    ...(report && { report }),
    ...(startTime !== undefined && { startTime }),
    ...(podUid !== undefined && { podUid, ...projectFields(view) }),
    ...(process && { process }),
    ...(permalink !== undefined && { permalink }),
  };
}

function projectFields({ update, project: prepared }: UpdateView): Fields {
  const project = update.status?.projectInfo ?? prepared;
  return project ? { projectInfo: { name: project.name, runtime: project.runtime } } : {};
}

function progressFields(view: UpdateView, progress: Progress): Fields {
  const { permalink, process } = progress;
  return {
    progress: progressSummary(view, progress),
    ...(process && { process }),
    ...(permalink !== undefined && { permalink }),
  };
}

function endFields(view: UpdateView, ending: Ending): Fields {
  const { result } = ending;
  const { stored } = view;
  const parts = [result && resultText(result), ...(stored?.problems ?? [])];
  const message = parts.filter((part) => part !== undefined).join("\n");
  const text = message || (ending.reason === "UpdateSucceeded" ? "" : ending.message);
  const stdout = result && stdoutOf(result);
  return {
    endTime: runEndTime(view, ending),
    ...(text !== "" && { message: truncate(text, 16_384) }),
    ...(result && resultFields(result)),
    ...(stdout && { stdout: { ...stdout, ...(stored?.stdout !== undefined && { secretName: stored.stdout }) } }),
    ...(stored?.outputs !== undefined && { outputs: stored.outputs }),
    ...(stored?.plan && { plan: stored.plan }),
  };
}

function resultFields(result: RunResult): Fields {
  const { error, project, progress, changes, drift } = result;
  const pending = pendingOperations(result);
  return {
    ...(progress.process && { process: progress.process }),
    ...(error && { errorClass: error.class }),
    ...(project && { projectInfo: { name: project.name, runtime: project.runtime } }),
    ...(progress.permalink !== undefined && { permalink: progress.permalink }),
    ...(Object.keys(changes).length > 0 && { changes, summary: summaryOf(result) }),
    ...(pending.length > 0 && { pendingOperations: pending }),
    ...(drift && { drift: boundedDrift(drift, driftLimits) }),
  };
}

/** The status must fit into an object. */
const driftLimits = { resources: 100, chars: 65_536 };

/** The agent's time, so that a repeated write is the same; but never before the start time. */
export function runEndTime({ now, update }: UpdateView, { result }: Ending): string {
  const end = parseTimestamp(result?.finishedAt) ?? now;
  return timestamp(Math.max(end, parseTimestamp(update.status?.startTime) ?? end));
}

interface Statement {
  readonly type: UpdateConditionType;
  readonly status: "True" | "False";
  readonly reason: UpdateReason | UpdateStalledReason;
  readonly message: string;
}

function timed({ update, now }: UpdateView, statements: readonly Statement[]): Condition[] {
  return statements.map((statement) => conditionAt(update, statement, now));
}

function statementsFor(outcome: Reported): Statement[] {
  switch (outcome.kind) {
    case "waiting":
      return openStatements(outcome.reason, outcome.message, { progressing: false });
    case "started":
      return openStatements("Progressing", messages.running, { progressing: true });
    case "progressing":
      return openStatements(outcome.reason, outcome.message, { progressing: true });
    case "stalled":
      return [...openStatements("TransientFailure", outcome.message, { progressing: true }), stalledStatement(outcome)];
    case "ended":
      return endStatements(outcome.ending);
  }
}

function stalledStatement({ reason, message }: Pick<Statement, "reason" | "message">): Statement {
  return { type: "Stalled", status: "True", reason, message: conditionMessage(message) };
}

/** Of an Update that has not ended. */
function openStatements(
  reason: UpdateReason,
  text: string,
  { progressing }: { readonly progressing: boolean },
): Statement[] {
  const message = conditionMessage(text);
  return [
    { type: "Progressing", status: progressing ? "True" : "False", reason, message },
    { type: "Failed", status: "False", reason, message },
    { type: "Complete", status: "False", reason, message },
    { type: "Ready", status: "False", reason, message },
  ];
}

function endStatements({ reason, message: text }: Ending): Statement[] {
  const message = conditionMessage(text);
  const isSuccess = reason === "UpdateSucceeded";
  return [
    { type: "Progressing", status: "False", reason: "Complete", message },
    { type: "Failed", status: isSuccess ? "False" : "True", reason, message },
    { type: "Complete", status: "True", reason: isSuccess ? "Updated" : reason, message },
    { type: "Ready", status: isSuccess ? "True" : "False", reason, message },
    ...(isSuccess ? [] : [stalledStatement({ reason, message: text })]),
  ];
}
