/** Other Stacks on which a Stack depends, and their outputs. */
import type { LastUpdate, NormalStack, Stack } from "@pko/api";
import { asOwner, classifyOwnership, refKey, type ApiObject, type Store } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { stacks as stackResource } from "../../kinds.ts";
import { outputKeyOf, stackOutputsSecretOf } from "../../shared/outputs/output-keys.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { cycleFrom, dependenciesOf, outputReferences, type OutputReference } from "../stack-dependencies.ts";
import { outputVersions } from "../desired/outputs-secret.ts";
import { lastTypeOf, reconcileRequestOf } from "../history/trigger.ts";
import type { PrerequisiteView, StackOutputView } from "../view.ts";
import type { Readers } from "./readers.ts";

type Stacks = Store<Stack>;

/** A Stack, as the Stacks that depend on it see it. */
export function prerequisiteView(name: string, stack: Stack | undefined, withinMs?: number): PrerequisiteView {
  const last = stack?.status?.lastUpdate;
  const endedAt = parseTimestamp(last?.lastResyncTime);
  return {
    name,
    ...(stack?.metadata.uid && { uid: stack.metadata.uid }),
    ...(withinMs !== undefined && { withinMs }),
    state: !stack ? "absent" : stack.metadata.deletionTimestamp ? "deleting" : "present",
    last: lastResult(last),
    isCurrent: stack !== undefined && isCurrent(stack, last),
    ...(endedAt !== undefined && { endedAt }),
    reconcileRequest: stack ? reconcileRequestOf(stack) : "",
  };
}

function lastResult(last: LastUpdate | undefined): PrerequisiteView["last"] {
  if (last?.state === "failed") return "failed";
  if (last?.state !== "succeeded" || lastTypeOf(last) === "destroy") return "none";
  return lastTypeOf(last) === "preview" ? "previewed" : "deployed";
}

/** Whether the last update was for the current spec and request. */
function isCurrent(stack: Stack, last: LastUpdate | undefined): boolean {
  const request = reconcileRequestOf(stack);
  return last?.generation === stack.metadata.generation && (request === "" || request === last?.reconcileRequest);
}

export function observeCycle(stacks: Stacks, stack: Stack, { name, namespace }: NormalStack): string[] {
  return cycleFrom(name, (other) => {
    const found = other === name ? stack : stacks.get(refKey({ namespace, name: other }));
    return found ? dependenciesOf(found) : [];
  });
}

export function observePrerequisites(stacks: Stacks, spec: NormalStack): PrerequisiteView[] {
  return spec.prerequisites.map(({ stack, succeededWithinMs }) => {
    const other = stacks.get(refKey({ namespace: spec.namespace, name: stack }));
    return prerequisiteView(stack, other, succeededWithinMs);
  });
}

export async function observeStackOutputs(
  stacks: Stacks,
  spec: NormalStack,
  readers: Readers,
): Promise<StackOutputView[]> {
  const { namespace } = spec;
  return await Promise.all(
    outputReferences(spec).map((reference) =>
      stackOutputView(reference, stacks.get(refKey({ namespace, name: reference.stack })), readers),
    ),
  );
}

async function stackOutputView(
  reference: OutputReference,
  other: Stack | undefined,
  readers: Readers,
): Promise<StackOutputView> {
  const from = prerequisiteView(reference.stack, other);
  const found =
    from.state === "present" ? await readers.secretObject(stackOutputsSecretOf(reference.stack)) : undefined;
  const secret = other && found && isOutputsSecretOf(other, found) ? found : undefined;
  const key = outputKeyOf(reference.output);
  const version = secret?.data?.[key] === undefined ? undefined : (outputVersions(secret)[key] ?? "unknown");
  const others = secret && Object.keys(secret.data ?? {});
  return {
    ...reference,
    from,
    ...(version !== undefined && { version }),
    ...(others && { others }),
    ...(found && !secret && { isForeign: true }),
  };
}

export const isOutputsSecretOf = (stack: Stack, secret: ApiObject<Secret>): boolean =>
  classifyOwnership(secret, asOwner(stackResource, stack)).kind === "ours";
