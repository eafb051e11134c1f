/** The steps of a Stack's reconcile. Each may be repeated after an interrupted pass. */
import { keyOf, stepDone, type PerformContext } from "@pko/kube";

import { rejectionIn } from "../../shared/objects/rejections.ts";
import { findMissingInputs } from "../observe/inputs.ts";
import { readersIn } from "../observe/readers.ts";
import { addFinalizer, removeFinalizer, removeOrphanFinalizers, removeUpdateFinalizers } from "./finalizers.ts";
import {
  applyWorkspace,
  createUpdate,
  deleteUpdates,
  deleteWorkspace,
  requestPrerequisites,
  withdrawUpdate,
  writeOutputs,
} from "./objects.ts";
import { replan, stackRef, type PerformedStep, type Performer } from "./performer.ts";
import type { Step } from "../steps.ts";
import type { StackView } from "../view.ts";

export async function performStack(
  tools: Omit<Performer, "signal">,
  step: Step,
  { view, signal }: PerformContext<StackView>,
): Promise<PerformedStep> {
  try {
    return await perform({ ...tools, signal }, view, step);
  } catch (error) {
    const rejection = rejectionIn(error);
    if (!rejection) throw error;
    return replan({ rejection });
  }
}

async function perform(performer: Performer, view: StackView, step: Step): Promise<PerformedStep> {
  switch (step.kind) {
    case "addFinalizer":
      return await addFinalizer(performer, view);
    case "removeFinalizer":
      return await removeFinalizer(performer, view, step);
    case "removeOrphanFinalizers":
      await removeOrphanFinalizers(performer, keyOf(view.stack), step.updates);
      return replan({ orphans: [] });
    case "removeUpdateFinalizers":
      return await removeUpdateFinalizers(performer, view, step);
    case "recordResult":
      return step.result.update.type === "up" ? await writeOutputs(performer, view, step.result.update.name) : stepDone;
    case "recordDrift":
    case "recordPlan":
    case "recordSkippedCommit":
      return stepDone;
    case "writeOutputs":
      return await writeOutputs(performer, view, step.updateName);
    case "requestPrerequisites":
      return await requestPrerequisites(performer, view, step);
    case "checkInputs":
      return await checkInputs(performer, view, step);
    case "claimSlot":
      return replan({ slot: performer.slots.claim(keyOf(view.stack), "stack", step.turn) });
    case "applyWorkspace":
      return await applyWorkspace(performer, view, step);
    case "createUpdate":
      return await createUpdate(performer, view, step);
    case "withdrawUpdate":
      return await withdrawUpdate(performer, view, step);
    case "deleteUpdates":
      return await deleteUpdates(performer, view, step);
    case "deleteWorkspace":
      return await deleteWorkspace(performer, view, step);
  }
}

async function checkInputs(
  { client, signal }: Performer,
  view: StackView,
  { spec }: Extract<Step, { kind: "checkInputs" }>,
): Promise<PerformedStep> {
  const readers = readersIn(stackRef(view).namespace, { client, signal }, view.readObjects);
  return replan({ missingInputs: await findMissingInputs(spec, readers) });
}
