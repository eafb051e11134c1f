/** The steps of an Update. Each is idempotent, and a crash after any of them loses nothing. */
import { fieldManagers } from "@pko/api";
import { stepDone, stepStale, type Client, type PerformContext, type Performed } from "@pko/kube";

import type { Runs } from "../../agents/agents.ts";
import { updates } from "../../kinds.ts";
import { isPodDeletionConfirmed, isReadyConfirmed, isUnknownStackConfirmed } from "./confirm.ts";
import { createSecret } from "./create-secret.ts";
import type { ResultSecrets } from "../desired/result-secrets.ts";
import { updateFinalizer } from "../finalizer.ts";
import type { Step } from "../steps.ts";
import { runIdOf, type StoredResult, type UpdateView } from "../view.ts";

export interface UpdateTools {
  /** Must be fenced: it writes nothing unless this process leads. */
  readonly client: Client;
  readonly runs: Runs;
}

interface Performer extends UpdateTools, PerformContext<UpdateView> {}

export async function performUpdate(
  tools: UpdateTools,
  step: Step,
  context: PerformContext<UpdateView>,
): Promise<Performed<UpdateView>> {
  const performer = { ...tools, ...context };
  const { runs, view } = performer;
  switch (step.kind) {
    case "confirmReady":
      return (await isReadyConfirmed(performer, view)) ? stepDone : stepStale;
    case "confirmPodDeleted":
      return (await isPodDeletionConfirmed(performer, view)) ? stepDone : stepStale;
    case "confirmStackUnknown":
      return (await isUnknownStackConfirmed(performer, view)) ? stepDone : stepStale;
    case "addFinalizer":
      return await setFinalizers(performer, (present) => [...present, updateFinalizer]);
    case "removeFinalizer":
      return await setFinalizers(performer, (present) => present.filter((name) => name !== updateFinalizer));
    case "followRun":
      runs.ensure(step.pod, step.request);
      return stepDone;
    case "cancelRun":
      runs.cancel(step.pod, step.runId);
      return stepDone;
    case "forgetRun":
      runs.forget(runIdOf(view));
      return stepDone;
    case "storeResult":
      return { kind: "done", facts: { stored: await storeResult(performer, step.secrets) } };
    case "deleteExpired":
      return await deleteExpired(performer);
  }
}

function refOf({ update }: UpdateView): { readonly namespace: string; readonly name: string } {
  const { namespace = "", name = "" } = update.metadata;
  return { namespace, name };
}

async function setFinalizers(
  { client, view, signal }: Performer,
  change: (present: readonly string[]) => readonly string[],
): Promise<Performed<UpdateView>> {
  const { uid, resourceVersion, finalizers = [] } = view.update.metadata;
  const patch = {
    type: "merge",
    body: { metadata: { uid, resourceVersion, finalizers: change(finalizers) } },
  } as const;
  await client.patch(updates, refOf(view), { patch, fieldManager: fieldManagers.operator, signal });
  return stepDone;
}

async function storeResult({ client, view, signal }: Performer, secrets: ResultSecrets): Promise<StoredResult> {
  const writer = { client, signal, update: view.update };
  const outputs = secrets.outputs && (await createSecret(writer, secrets.outputs));
  const stdout = secrets.stdout && (await createSecret(writer, secrets.stdout));
  const failures = [outputs, stdout].flatMap((created) => (created?.failure === undefined ? [] : [created.failure]));
  const outputsName = outputs?.name ?? secrets.unreadOutputs;
  return {
    // Also if it could not be created: no name means that there are no outputs. Readers check the Secret's owner.
    ...(outputsName !== undefined && { outputs: outputsName }),
    ...(stdout && stdout.failure === undefined && { stdout: stdout.name }),
    problems: [...secrets.problems, ...failures],
    failures,
  };
}

async function deleteExpired({ client, view, signal }: Performer): Promise<Performed<UpdateView>> {
  const { uid = "", resourceVersion } = view.update.metadata;
  const version = { uid, ...(resourceVersion !== undefined && { resourceVersion }) };
  await client.delete(updates, refOf(view), { ...version, propagationPolicy: "Background", signal });
  return stepDone;
}
