/** An Update as its Stack sees it. */
import { stackFinalizer, type Condition, type Update, type UpdateStatus } from "@pko/api";

import { truncate } from "../shared/truncate.ts";
import { withdrawn } from "./due.ts";
import { parseTrigger, timeOf, triggerAnnotation } from "./trigger.ts";
import type { UpdateView } from "./view.ts";

export function updateView(update: Update): UpdateView {
  const { metadata, spec } = update;
  const { finalizers = [], resourceVersion = "", name = "", uid = "" } = metadata;
  const state = stateOf(update);
  const trigger = parseTrigger(metadata.annotations?.[triggerAnnotation]);
  const stall = isTrue(update, "Stalled") ? condition(update, "Stalled")?.message : undefined;
  return {
    name,
    uid,
    deleting: metadata.deletionTimestamp !== undefined,
    type: spec?.type ?? "up",
    state,
    held: finalizers.includes(stackFinalizer),
    finalizers,
    resourceVersion,
    ...timesOf(update, state),
    ...(trigger && { trigger }),
    ...(stall !== undefined && { stall }),
    ...(state === "failed" && failureOf(update)),
    ...resultOf(update.status ?? {}),
  };
}

function timesOf(update: Update, state: UpdateView["state"]) {
  const startedAt = timeOf(update.status?.startTime);
  const endedAt = timeOf(update.status?.endTime) ?? (state === "running" ? undefined : endOf(update));
  return {
    createdAt: timeOf(update.metadata.creationTimestamp) ?? 0,
    ...(startedAt !== undefined && { startedAt }),
    ...(endedAt !== undefined && { endedAt }),
  };
}

function resultOf(status: UpdateStatus): Pick<UpdateView, "permalink" | "projectInfo" | "outputs" | "report"> {
  const { permalink, projectInfo, outputs, changes, summary, stdout } = status;
  return {
    ...(permalink && { permalink }),
    ...(projectInfo && { projectInfo }),
    ...(outputs && { outputs }),
    report: { ...(changes && { changes }), ...(summary !== undefined && { summary }), ...(stdout && { stdout }) },
  };
}

const condition = ({ status }: Update, type: string): Condition | undefined =>
  status?.conditions?.find((each) => each.type === type);

const isTrue = (update: Update, type: string): boolean => condition(update, type)?.status === "True";

function stateOf(update: Update): UpdateView["state"] {
  if (isTrue(update, "Failed")) return "failed";
  return isTrue(update, "Complete") ? "succeeded" : "running";
}

function endOf(update: Update): number | undefined {
  const ended = condition(update, "Complete") ?? condition(update, "Failed");
  return timeOf(ended?.lastTransitionTime);
}

const longestMessage = 4096;

function failureOf(update: Update): Pick<UpdateView, "failure" | "message"> {
  const words = update.status?.message || condition(update, "Failed")?.message || "the update failed";
  const failure = classOf(update, words);
  return {
    message: truncate(words, longestMessage),
    ...(failure && { failure }),
  };
}

const conflicting = /\[409\]|another update is currently in progress|the stack is currently locked/i;

/** As the Update tells it; the words of one that another operator made may betray it. */
function classOf(update: Update, words: string): string | undefined {
  const { errorClass } = update.status ?? {};
  if (errorClass) return errorClass;
  if (conflicting.test(words)) return "conflict";
  const { reason } = condition(update, "Failed") ?? {};
  if (reason === "Canceled" && !update.status?.startTime) return withdrawn;
  return reason === "Aborted" ? "interrupted" : undefined;
}
