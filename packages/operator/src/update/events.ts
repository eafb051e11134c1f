/** The events of an Update: recorded after its status, so that the result can be read there. Pure. */
import { autoEvents, stackEvents, type AutoEvent, type StackEvent } from "@pko/api";
import type { EventNote } from "@pko/kube";

import { isConditionTrue } from "../shared/objects/conditions.ts";
import { endTimeOf } from "../shared/updates.ts";
import * as messages from "./messages.ts";
import type { Ending } from "./outcome.ts";
import type { UpdatePlan } from "./steps.ts";
import type { UpdateView } from "./view.ts";

export function updateEvents(view: UpdateView, { steps, outcome }: UpdatePlan): EventNote[] {
  const { update } = view;
  if (steps.some(({ kind }) => kind === "deleteExpired")) {
    const { ttlAfterCompleted = "" } = update.spec ?? {};
    return [autoEvent("UpdateExpired", messages.expired(endTimeOf(update), ttlAfterCompleted))];
  }
  if (outcome.kind === "ended") return [endEvent(outcome.ending), ...lossEvents(view), ...recordEvents(view)];
  // Only when it becomes stalled.
  const isNews = outcome.kind === "stalled" && !isConditionTrue(update, "Stalled");
  return isNews ? [autoEvent(outcome.reason, outcome.message)] : [];
}

function endEvent({ reason, message }: Ending): EventNote {
  return autoEvent(reason === "UpdateSucceeded" ? "UpdateSucceeded" : "UpdateFailed", message);
}

/** What could not be stored of an operation that has ended. */
function lossEvents({ stored, statusRejection }: UpdateView): EventNote[] {
  const losses = [
    ...(stored?.failures ?? []),
    ...(statusRejection === undefined ? [] : [messages.messagesNotStored(statusRejection)]),
  ];
  const reason: StackEvent = "StackOutputRetrievalFailure";
  return losses.length === 0 ? [] : [{ type: stackEvents[reason], reason, message: losses.join("\n") }];
}

function recordEvents({ run, recordFailure }: UpdateView): EventNote[] {
  if (recordFailure !== undefined) return [autoEvent("RecordNotStored", recordFailure)];
  const problem = run?.state === "finished" ? run.recordProblem : undefined;
  return problem === undefined ? [] : [autoEvent("RecordNotStored", messages.recordWithoutEvents(problem))];
}

function autoEvent(reason: AutoEvent, message: string): EventNote {
  return { type: autoEvents[reason], reason, message };
}
