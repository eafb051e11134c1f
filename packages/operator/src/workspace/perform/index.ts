/** All writes of the Workspace controller, one function per step. Each is idempotent. */
import { keyOf, stepDone } from "@pko/kube";

import { buildPrepareRequest, noAppTokens } from "../prepare/request.ts";
import type { Step } from "../steps.ts";
import { ensureCacheClaim } from "./cache-claim.ts";
import { issueCertificate } from "./certificate.ts";
import { assessCertificate, readInputs } from "./inputs.ts";
import { applyObjects, checkNames } from "./objects.ts";
import { type Performer, type WorkspaceContext, type WorkspacePerformed } from "./owned.ts";
import { deletePod, dryRunPod } from "./pod.ts";
import { restoreStatefulSet, retryPodCreation, scaleToZero } from "./statefulset.ts";

/** They change no object. */
export const quietSteps: ReadonlySet<Step["kind"]> = new Set<Step["kind"]>([
  "readInputs",
  "assessCertificate",
  "claimSlot",
  "checkNames",
  "dryRunPod",
  "requestAppToken",
  "prepare",
  "forgetPreparation",
  "reconcileOther",
]);

export async function performWorkspace(
  performer: Performer,
  step: Step,
  context: WorkspaceContext,
): Promise<WorkspacePerformed> {
  switch (step.kind) {
    case "readInputs":
      return await readInputs(performer, step, context);
    case "assessCertificate":
      return await assessCertificate(performer, context);
    case "claimSlot":
      return {
        kind: "replan",
        facts: { slot: performer.slots.claim(keyOf(context.view.workspace), "workspace", { rank: step.rank }) },
      };
    case "checkNames":
      return await checkNames(performer, context);
    case "ensureCacheClaim":
      return await ensureCacheClaim(performer, step, context);
    case "issueCertificate":
      return await issueCertificate(performer, step, context);
    case "applyObjects":
      return await applyObjects(performer, step, context);
    case "restoreStatefulSet":
      return await restoreStatefulSet(performer, step, context);
    case "scaleToZero":
      return await scaleToZero(performer, step, context);
    case "deletePod":
      return await deletePod(performer, step, context);
    case "dryRunPod":
      return await dryRunPod(performer, context);
    case "retryPodCreation":
      return await retryPodCreation(performer, step, context);
    case "requestAppToken":
      return await requestAppToken(performer, step, context);
    case "prepare":
      return prepare(performer, step);
    case "forgetPreparation":
      return forgetPreparation(performer, context);
    case "reconcileOther":
      return reconcileOther(performer, step, context);
  }
}

type StepOf<Kind extends Step["kind"]> = Extract<Step, { kind: Kind }>;

function prepare({ preparations }: Performer, { pod, request, retry }: StepOf<"prepare">): WorkspacePerformed {
  let preparation = preparations.ensure(pod, request);
  if (retry && preparation.state === "done" && !preparation.result.ok) {
    preparations.retry(pod);
    preparation = preparations.ensure(pod, request);
  }
  return { kind: "replan", facts: { preparation, ...(retry && { isRetried: true }) } };
}

function reconcileOther(
  { enqueue }: Performer,
  { key }: StepOf<"reconcileOther">,
  { view }: WorkspaceContext,
): WorkspacePerformed {
  if (key !== keyOf(view.workspace)) enqueue(key);
  return stepDone;
}

function forgetPreparation({ preparations }: Performer, { view }: WorkspaceContext): WorkspacePerformed {
  const { name = "", namespace = "" } = view.workspace.metadata;
  preparations.forget({ namespace, name });
  return stepDone;
}

/** The token is valid for an hour, and cached until it expires. */
async function requestAppToken(
  { githubApps }: Performer,
  { app }: StepOf<"requestAppToken">,
  { view, signal }: WorkspaceContext,
): Promise<WorkspacePerformed> {
  const { inputs, spec } = view;
  if (!inputs || !spec.ok) return stepDone;
  const appToken = githubApps ? await githubApps.tokenFor(app, signal) : noAppTokens;
  const requested = buildPrepareRequest(spec.value, { ...inputs.materials, appToken });
  return { kind: "replan", facts: { inputs: { ...inputs, requested } } };
}
