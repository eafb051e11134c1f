/** The outputs of the Update whose result is unrecorded, or whose outputs are pending. */
import { asOwner, builtin, classifyOwnership, isOwnedBy, type ApiObject, type Occupant } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { updates as updateResource } from "../../kinds.ts";
import { foreignText } from "../../shared/objects/ownership.ts";
import { stackOutputsSecretOf } from "../../shared/outputs/output-keys.ts";
import { outputValues, outputVersions } from "../desired/outputs-secret.ts";
import { unrecordedUpdate, updateWithPendingOutputs } from "../history/result.ts";
import * as messages from "../messages.ts";
import type { OutputsView, StackView, UpdateFacts } from "../view.ts";
import { isOutputsSecretOf } from "./prerequisites.ts";
import type { Readers } from "./readers.ts";

export async function observeOutputs(
  history: Pick<StackView, "stack" | "updates">,
  readers: Readers,
): Promise<OutputsView> {
  const update = unrecordedUpdate(history) ?? updateWithPendingOutputs(history);
  if (update?.state !== "succeeded" || update.type === "destroy") return { kind: "none" };
  const found = await readers.secretObject(stackOutputsSecretOf(history.stack.metadata.name ?? ""));
  const own = found && isOutputsSecretOf(history.stack, found) ? found : undefined;
  const former = { data: own?.data ?? {}, versions: outputVersions(own) };
  if (update.outputs === undefined) return { kind: "read", values: [], former };
  const secret = await readers.secretObject(update.outputs);
  if (!secret) return { kind: "lost", message: messages.outputsSecretMissing(update.outputs) };
  const occupant = otherOwner(update, secret);
  return occupant
    ? { kind: "lost", message: foreignText([occupant], { kind: updateResource.kind, name: update.name }), occupant }
    : { kind: "read", values: outputValues(secret), former };
}

/**
 * Anyone may create a Secret of that name, so only one that the Update owns is trusted. If the outputs have not changed, it is the
 * Secret of an earlier Update, which controls it.
 */
function otherOwner({ name, uid }: UpdateFacts, secret: ApiObject<Secret>): Occupant | undefined {
  const owner = asOwner(updateResource, { metadata: { name, uid } });
  if (isOwnedBy(secret, owner)) return undefined;
  const ownership = classifyOwnership({ ...secret, kind: builtin.secrets.kind }, owner);
  return ownership.kind === "former" || ownership.kind === "foreign" ? ownership.occupant : undefined;
}
