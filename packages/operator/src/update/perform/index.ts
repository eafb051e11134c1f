/** The steps of an Update. Each is idempotent, and a crash after any of them loses nothing. */
import { fieldManagers, type UpdateRecord } from "@pko/api";
import { stepDone, stepStale, type Client, type Clock, type PerformContext, type Performed } from "@pko/kube";

import type { Runs } from "../../agents/agents.ts";
import { updates } from "../../kinds.ts";
import { isApprovalConfirmed, isPodDeletionConfirmed, isReadyConfirmed, isUnknownStackConfirmed } from "./confirm.ts";
import type { OwnedWriter } from "./create-owned.ts";
import { createSecret, type CreatedSecret } from "./create-secret.ts";
import { storeOutputs } from "./store-outputs.ts";
import { claimSlot, giveUpSlot, type SlotClaims } from "./slot.ts";
import { storeRecord } from "./store-record.ts";
import { readPlan, releaseApproval, useApproval } from "./plans.ts";
import type { ResultSecrets } from "../desired/result-secrets.ts";
import { updateFinalizer } from "../finalizer.ts";
import type { Step } from "../steps.ts";
import { runIdOf, type StoredResult, type UpdateView } from "../view.ts";

export interface UpdateTools {
  /** Must be fenced: it writes nothing unless this process leads. */
  readonly client: Client;
  readonly runs: Runs;
  readonly slots: SlotClaims;
  readonly clock?: Clock | undefined;
}

interface Performer extends UpdateTools, PerformContext<UpdateView> {}

export async function performUpdate(
  tools: UpdateTools,
  step: Step,
  context: PerformContext<UpdateView>,
): Promise<Performed<UpdateView>> {
  const performer = { ...tools, ...context };
  switch (step.kind) {
    case "claimSlot":
      return claimSlot(performer, step);
    case "giveUpSlot":
      giveUpSlot(performer);
      return stepDone;
    case "confirmReady":
    case "confirmPodDeleted":
    case "confirmStackUnknown":
    case "confirmApproval":
      return (await confirmations[step.kind](performer, performer.view)) ? stepDone : stepStale;
    case "useApproval":
      return await useApproval(performer, step.approval);
    case "releaseApproval":
      return await releaseApproval(performer);
    case "readPlan":
      return { kind: "replan", facts: { planContent: await readPlan(performer, step.plan) } };
    case "addFinalizer":
      return await setFinalizers(performer, (present) => [...present, updateFinalizer]);
    case "removeFinalizer":
      return await setFinalizers(performer, (present) => present.filter((name) => name !== updateFinalizer));
    case "followRun":
    case "attachRun":
    case "cancelRun":
    case "forgetRun":
      requestRun(performer, step);
      return stepDone;
    case "storeResult":
      return await storeResult(performer, step.secrets);
    case "storeRecord":
      return await performRecord(performer, step.record);
    case "deleteExpired":
      return await deleteExpired(performer);
  }
}

const confirmations = {
  confirmReady: isReadyConfirmed,
  confirmPodDeleted: isPodDeletionConfirmed,
  confirmStackUnknown: isUnknownStackConfirmed,
  confirmApproval: isApprovalConfirmed,
} as const;

/** Requests to agents. None of them waits for a response. */
function requestRun(
  { runs, view }: Performer,
  step: Extract<Step, { kind: "followRun" | "attachRun" | "cancelRun" | "forgetRun" }>,
): void {
  switch (step.kind) {
    case "followRun":
      runs.ensure(step.pod, step.request);
      break;
    case "attachRun":
      runs.attach(step.pod, step.runId);
      break;
    case "cancelRun":
      runs.cancel(step.pod, step.runId);
      break;
    case "forgetRun":
      runs.forget(runIdOf(view));
      break;
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

/** Without its plan, the Update fails: then the plan is made again. */
async function storeResult(performer: Performer, secrets: ResultSecrets): Promise<Performed<UpdateView>> {
  const { client, view, signal } = performer;
  const writer = { client, signal, update: view.update };
  const parts: CreatedSecret[] = [];
  for (const secret of secrets.plan?.secrets ?? []) parts.push(await createSecret(writer, secret));
  const planFailure = parts.find(({ failure }) => failure !== undefined)?.failure;
  if (planFailure !== undefined) return { kind: "replan", facts: { planFailure } };
  const plan = secrets.plan && { ...secrets.plan.summary, secretNames: parts.map(({ name }) => name) };
  return { kind: "done", facts: { stored: { ...(await storeOthers(writer, secrets)), ...(plan && { plan }) } } };
}

async function storeOthers(writer: OwnedWriter, secrets: Omit<ResultSecrets, "plan">): Promise<StoredResult> {
  const outputs = secrets.outputs && (await storeOutputs(writer, secrets.outputs, secrets.formerOutputs));
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

async function performRecord(
  { client, clock, view, signal }: Performer,
  record: UpdateRecord,
): Promise<Performed<UpdateView>> {
  const recordFailure = await storeRecord({ client, clock, signal, update: view.update }, record);
  return recordFailure === undefined ? stepDone : { kind: "done", facts: { recordFailure } };
}

async function deleteExpired({ client, view, signal }: Performer): Promise<Performed<UpdateView>> {
  const { uid = "", resourceVersion } = view.update.metadata;
  const version = { uid, ...(resourceVersion !== undefined && { resourceVersion }) };
  await client.delete(updates, refOf(view), { ...version, propagationPolicy: "Background", signal });
  return stepDone;
}
