/** Writes the outputs of an Update to the Secret of its Stack. */
import { fieldManagers } from "@pko/api";
import { applyOwned, builtin, isForbidden, isInvalid, stepDone } from "@pko/kube";

import { outputsSecret } from "../desired/outputs-secret.ts";
import type { StackView } from "../view.ts";
import { ownedTarget, performedBy, type PerformedStep, type Performer } from "./performer.ts";

/** Written before the status, which announces them. The result is recorded even if they cannot be written. */
export async function writeOutputs(performer: Performer, view: StackView, updateName: string): Promise<PerformedStep> {
  if (view.outputs.kind !== "read" || view.occupiedOutputs) return stepDone;
  const { metadata, ...rest } = outputsSecret(view.stack, updateName, view.outputs);
  const name = metadata.name ?? "";
  const write = { resource: builtin.secrets, body: { ...rest, metadata: { ...metadata, name } } };
  try {
    const written = await applyOwned(ownedTarget(performer, view), write, { fieldManager: fieldManagers.operator });
    return performedBy(written, "occupiedOutputs");
  } catch (error) {
    if (!isInvalid(error) && !isForbidden(error)) throw error;
    return { kind: "done", facts: { rejectedOutputs: { secretName: name, explanation: error.explanation } } };
  }
}
