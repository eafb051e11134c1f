/** Rules about finished updates. */
import type { LastUpdate } from "@pko/api";

import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { recordedUpdates, resultToRecord, unrecordedUpdate } from "../history/result.ts";
import { isCancelled } from "../history/trigger.ts";
import * as messages from "../messages.ts";
import { processing, stalled, type Outcome } from "../outcome.ts";
import { unchanged, type StackPlan, type Step } from "../steps.ts";
import { isDeleting, validSpec, type StackView } from "../view.ts";
import { failedOutcome, upToDateOutcome, whyOutputsPending } from "./no-update-due.ts";
import { earliestStart } from "./windows.ts";

export function updatesOrphaned({ orphans }: StackView): StackPlan | undefined {
  if (orphans.length === 0) return undefined;
  return { steps: [{ kind: "removeOrphanFinalizers", updates: orphans }], outcome: unchanged };
}

export function resultsRecorded(view: StackView): StackPlan | undefined {
  const updates = recordedUpdates(view);
  if (updates.length === 0) return undefined;
  return { steps: [{ kind: "removeUpdateFinalizers", updates }], outcome: unchanged };
}

export function resultUnrecorded(view: StackView): StackPlan | undefined {
  const update = unrecordedUpdate(view);
  if (!update) return undefined;
  const result = resultToRecord(view, update);
  const { lastUpdate } = result;
  const steps: Step[] = [{ kind: "recordResult", result }];
  if (!lastUpdate.outputsPending) return { steps, outcome: outcomeAfter(view, lastUpdate) };
  const { outcome, requeueAt } = whyOutputsPending(view, lastUpdate);
  return { steps, outcome, ...(requeueAt !== undefined && { requeueAt }) };
}

function outcomeAfter(view: StackView, last: LastUpdate): Outcome {
  const spec = validSpec(view);
  if (last.state !== "succeeded") {
    return isCancelled(view.stack, last.name)
      ? stalled("UpdateFailed", messages.cancelled(last))
      : failedOutcome(view, last);
  }
  if (isDeleting(view)) return processing(messages.destroyed);
  if (last.generation !== (view.stack.metadata.generation ?? 0)) return processing(messages.specChanged);
  const endedAt = parseTimestamp(last.lastResyncTime);
  const nextAt =
    spec?.resync.always && endedAt !== undefined ? earliestStart(view, endedAt + spec.resync.everyMs) : undefined;
  return upToDateOutcome(view, last, nextAt);
}
