/** The one place that computes an Update's status. */
import type { Condition, Update, UpdateConditionType, UpdateReason, UpdateStall, UpdateStatus } from "@pko/api";
import { assertNever, type Progress, type RunResult } from "@pko/rpc";

import { truncate } from "../shared/truncate.ts";
import type { Ending, Kept, Outcome } from "./outcome.ts";
import { errorText, headline, progressOf, stdoutOf, summaryOf, timestamp } from "./report.ts";
import type { UpdateView } from "./view.ts";

/** The same from the beginning to the end: a word less to write. */
export const underWayMessage = "The operation is under way.";

export function statusOf(view: UpdateView, outcome: Outcome): UpdateStatus {
  return {
    observedGeneration: view.update.metadata.generation ?? 0,
    ...fieldsOf(view, outcome),
    conditions: conditionsFor(outcome).map((condition) => timed(view, condition)),
  };
}

/** Of one that has ended, with no word in it that is not ours. */
export function wordlessStatusOf(view: UpdateView, ending: Ending, { outputs }: Kept): UpdateStatus {
  const { metadata, spec, status } = view.update;
  const what = ending.reason === "UpdateSucceeded" ? "succeeded" : "did not succeed";
  const message = `The ${spec?.type ?? "operation"} ${what}. What it said could not be stored, because the API server refused it; the log of the workspace's pod may have it.`;
  const { startTime, podUid } = status ?? {};
  const process = ending.result?.progress.process ?? status?.process;
  return {
    observedGeneration: metadata.generation ?? 0,
    ...(startTime !== undefined && { startTime }),
    ...(podUid !== undefined && { podUid }),
    ...(process && { process }),
    endTime: endTimeOf(view, ending),
    message,
    ...(ending.result?.error && { errorClass: ending.result.error.class }),
    ...(outputs !== undefined && { outputs }),
    conditions: endConditions({ reason: ending.reason, message }).map((condition) => timed(view, condition)),
  };
}

type Fields = Omit<UpdateStatus, "observedGeneration" | "conditions">;

/** What was told before stays, unless the outcome knows better: an apply drops what is not repeated. */
function fieldsOf(view: UpdateView, outcome: Outcome): Fields {
  const begun = begunFields(view);
  const { progress } = view.update.status ?? {};
  switch (outcome.kind) {
    case "waiting":
      return begun;
    case "intended":
      return { ...begun, ...projectFields(view), startTime: timestamp(view.now), podUid: outcome.podUid };
    case "stalled":
      return { ...begun, ...(progress && { progress }) };
    case "progressing":
      return { ...begun, ...(outcome.progress ? progressFields(view, outcome.progress) : progress && { progress }) };
    case "ended":
      return { ...begun, ...endFields(view, outcome.ending, outcome.kept) };
    default:
      return assertNever(outcome);
  }
}

function begunFields(view: UpdateView): Fields {
  const { startTime, podUid, process, permalink } = view.update.status ?? {};
  return {
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
    progress: progressOf({ progress, nowMs: view.now, expected: view.expectedResources }),
    ...(process && { process }),
    ...(permalink !== undefined && { permalink }),
  };
}

function endFields(view: UpdateView, ending: Ending, kept: Kept): Fields {
  const { result } = ending;
  const message = [result && errorText(result), ...kept.notes].filter((part) => part !== undefined).join("\n");
  const text = message || (ending.reason === "UpdateSucceeded" ? "" : ending.message);
  const stdout = result && stdoutOf(result);
  return {
    endTime: endTimeOf(view, ending),
    ...(text !== "" && { message: truncate(text, 16_384) }),
    ...(result && resultFields(result)),
    ...(stdout && { stdout: { ...stdout, ...(kept.stdout !== undefined && { secretName: kept.stdout }) } }),
    ...(kept.outputs !== undefined && { outputs: kept.outputs }),
  };
}

function resultFields(result: RunResult): Fields {
  const { error, project, progress, changes } = result;
  return {
    ...(progress.process && { process: progress.process }),
    ...(error && { errorClass: error.class }),
    ...(project && { projectInfo: { name: project.name, runtime: project.runtime } }),
    ...(progress.permalink !== undefined && { permalink: progress.permalink }),
    ...(Object.keys(changes).length > 0 && { changes, summary: summaryOf(result) }),
  };
}

/** The agent's word, so that whoever writes it again writes the same; but never before the beginning. */
function endTimeOf({ now, update }: UpdateView, { result }: Ending): string {
  const finished = Date.parse(result?.finishedAt ?? "");
  const started = Date.parse(update.status?.startTime ?? "");
  const end = Number.isNaN(finished) ? now : finished;
  return timestamp(Number.isNaN(started) ? end : Math.max(end, started));
}

interface Statement {
  readonly type: UpdateConditionType;
  readonly status: "True" | "False";
  readonly reason: UpdateReason | UpdateStall;
  readonly message: string;
}

function conditionsFor(outcome: Outcome): Statement[] {
  switch (outcome.kind) {
    case "waiting":
      return three(outcome.reason, outcome.message, { progressing: false });
    case "intended":
      return three("Progressing", underWayMessage, { progressing: true });
    case "progressing":
      return three(outcome.reason, outcome.message, { progressing: true });
    case "stalled":
      return [
        ...three("TransientFailure", outcome.message, { progressing: true }),
        { type: "Stalled", status: "True", reason: outcome.reason, message: headline(outcome.message) },
      ];
    case "ended":
      return endConditions(outcome.ending);
    default:
      return assertNever(outcome);
  }
}

function three(reason: UpdateReason, text: string, { progressing }: { readonly progressing: boolean }): Statement[] {
  const message = headline(text);
  return [
    { type: "Progressing", status: progressing ? "True" : "False", reason, message },
    { type: "Failed", status: "False", reason, message },
    { type: "Complete", status: "False", reason, message },
  ];
}

function endConditions({ reason, message: text }: Ending): Statement[] {
  const message = headline(text);
  const isSuccess = reason === "UpdateSucceeded";
  return [
    { type: "Progressing", status: "False", reason: "Complete", message },
    { type: "Failed", status: isSuccess ? "False" : "True", reason, message },
    { type: "Complete", status: "True", reason: isSuccess ? "Updated" : reason, message },
  ];
}

function timed({ update, now }: UpdateView, statement: Statement): Condition {
  const before = conditionOf(update, statement.type);
  return {
    ...statement,
    lastTransitionTime: before?.status === statement.status ? before.lastTransitionTime : timestamp(now),
    observedGeneration: update.metadata.generation ?? 0,
  };
}

function conditionOf({ status }: Update, type: UpdateConditionType): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}
