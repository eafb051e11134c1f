/** Steps that add and remove the finalizer of Stacks and Updates. */
import { fieldManagers, isComplete, labelsOfStack, stackFinalizer, stackNameLabel, type Update } from "@pko/api";
import { asOwner, isOwnedBy, parseKey, stepDone, stepStale, type Key, type ObjectRef } from "@pko/kube";

import { stacks, updates } from "../../kinds.ts";
import { unfinishedIn } from "../../shared/updates.ts";
import type { Step } from "../steps.ts";
import type { StackView, UpdateFacts } from "../view.ts";
import { ignoreNotFound, isSameStack, replan, stackRef, type PerformedStep, type Performer } from "./performer.ts";

type Api = Pick<Performer, "client" | "signal">;

export async function addFinalizer({ client, signal }: Api, view: StackView): Promise<PerformedStep> {
  const { apiVersion, kind } = stacks;
  const metadata = { ...stackRef(view), uid: view.stack.metadata.uid ?? "", finalizers: [stackFinalizer] };
  await client.apply(stacks, { apiVersion, kind, metadata }, { fieldManager: fieldManagers.stackFinalizer, signal });
  return stepDone;
}

/** The Stack is deleted after this, so the API server confirms first what the stores show (docs/adr/0010). */
export async function removeFinalizer(
  performer: Performer,
  view: StackView,
  { nothingDeployed }: Extract<Step, { kind: "removeFinalizer" }>,
): Promise<PerformedStep> {
  const { client, signal } = performer;
  const ref = stackRef(view);
  const stack = await client.find(stacks, ref, { signal });
  if (!stack) return stepDone;
  if (!isSameStack(stack, view)) return stepStale;
  if (nothingDeployed && (await mayHaveDeployed(performer, view))) return stepStale;
  const unfinished = await unfinishedIn(performer, ref);
  if (unfinished.some((update) => isOwnedBy(update, asOwner(stacks, view.stack)))) return stepStale;
  const running = view.workspace.kind === "foreign" ? undefined : unfinished.find(({ status }) => status?.podUid);
  if (running) return replan({ otherUpdate: running.metadata.name ?? "" });
  const { resourceVersion, finalizers = [] } = stack.metadata;
  const patch = {
    type: "merge",
    body: { metadata: { resourceVersion, finalizers: otherThanOurs(finalizers) } },
  } as const;
  await ignoreNotFound(client.patch(stacks, ref, { patch, fieldManager: fieldManagers.stackFinalizer, signal }));
  return stepDone;
}

/** Whether the Stack has an Update that may change resources, or is not complete. */
async function mayHaveDeployed({ client, signal }: Performer, view: StackView): Promise<boolean> {
  const { name, namespace } = stackRef(view);
  const labelSelector = `${stackNameLabel}=${labelsOfStack(name)[stackNameLabel]}`;
  const { items } = await client.list(updates, { namespace, labelSelector, signal });
  const owned = items.filter((update) => isOwnedBy(update, asOwner(stacks, view.stack)));
  const isPreview = ({ spec }: Update): boolean => spec?.type === "preview" || spec?.previewOnly === true;
  return owned.some((update) => !isPreview(update) || !isComplete(update));
}

export async function removeUpdateFinalizers(
  api: Api,
  view: StackView,
  { updates: recorded }: Extract<Step, { kind: "removeUpdateFinalizers" }>,
): Promise<PerformedStep> {
  const { namespace } = stackRef(view);
  for (const update of recorded) await removeUpdateFinalizer(api, { namespace, name: update.name }, update);
  const names = new Set(recorded.map(({ name }) => name));
  const without = (update: UpdateFacts): UpdateFacts => ({
    ...update,
    hasFinalizer: false,
    finalizers: otherThanOurs(update.finalizers),
  });
  return replan({ updates: view.updates.map((update) => (names.has(update.name) ? without(update) : update)) });
}

/** The API server confirms that their Stack does not exist: an unrecorded Update would run again. */
export async function removeOrphanFinalizers(
  { client, signal }: Api,
  key: Key,
  orphans: readonly Update[],
): Promise<void> {
  if (orphans.length === 0) return;
  const { namespace = "", name } = parseKey(key);
  const stack = await client.find(stacks, { namespace, name }, { signal });
  for (const update of orphans) {
    if (stack && isOwnedBy(update, asOwner(stacks, stack))) continue;
    const { name: updateName = "", resourceVersion = "", finalizers = [] } = update.metadata;
    await removeUpdateFinalizer({ client, signal }, { namespace, name: updateName }, { resourceVersion, finalizers });
  }
}

async function removeUpdateFinalizer(
  { client, signal }: Api,
  ref: ObjectRef,
  { resourceVersion, finalizers }: Pick<UpdateFacts, "resourceVersion" | "finalizers">,
): Promise<void> {
  const patch = {
    type: "merge",
    body: { metadata: { resourceVersion, finalizers: otherThanOurs(finalizers) } },
  } as const;
  await ignoreNotFound(client.patch(updates, ref, { patch, fieldManager: fieldManagers.operator, signal }));
}

const otherThanOurs = (finalizers: readonly string[]): string[] =>
  finalizers.filter((finalizer) => finalizer !== stackFinalizer);
