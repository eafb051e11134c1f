/** The steps of a reconcile of pull request previews. Each may be repeated after an interrupted pass. */
import { cancellationRequestAnnotation, fieldManagers, type CancelledPreview, type Stack } from "@pko/api";
import { targetOf } from "@pko/forge";
import {
  applyOwned,
  asOwner,
  deleteOwned,
  patchOwned,
  stepDone,
  stepStale,
  type Client,
  type OwnedTarget,
  type PerformContext,
  type Performed,
} from "@pko/kube";

import { stacks } from "../kinds.ts";
import { secretValues } from "../forge/credentials.ts";
import { findSecret } from "../shared/objects/find-secret.ts";
import { stackExists } from "../shared/objects/stack-exists.ts";
import { rejectionIn } from "../shared/objects/rejections.ts";
import { previewContext } from "../shared/pull-request-preview.ts";
import type { ReportStatus } from "./forge.ts";
import { reportSettings } from "./preview-stack.ts";
import type { CancelledReport, Step, WantedPreview } from "./steps.ts";
import type { Blockage, PullRequestsView } from "./view.ts";

type PerformedStep = Performed<PullRequestsView>;

export interface PullRequestTools {
  readonly client: Client;
  readonly report: ReportStatus;
}

export async function performPullRequests(
  { client, report }: PullRequestTools,
  step: Step,
  { view, signal }: PerformContext<PullRequestsView>,
): Promise<PerformedStep> {
  const target: OwnedTarget = { client, signal, owner: asOwner(stacks, view.stack) };
  switch (step.kind) {
    case "applyPreviews":
      return (await stackExists(target, view.stack)) ? await applyPreviews(target, step.previews) : stepStale;
    case "deletePreviews":
      return await deletePreviews(target, step.previews);
    case "reportCancelled":
      return {
        kind: "replan",
        facts: { answered: await reportCancelled({ client, report }, step.previews, { view, signal }) },
      };
  }
}

/** One preview that cannot be written does not keep the others waiting. */
async function applyPreviews(target: OwnedTarget, previews: readonly WantedPreview[]): Promise<PerformedStep> {
  const blocked = new Map<number, Blockage>();
  for (const { number, stack } of previews) {
    const result = await applyPreview(target, stack);
    if (result === "changed") return stepStale;
    if (result !== "written") blocked.set(number, result);
  }
  return blocked.size > 0 ? { kind: "replan", facts: { blocked } } : stepDone;
}

async function applyPreview(target: OwnedTarget, stack: Stack): Promise<"written" | "changed" | Blockage> {
  const { metadata, spec } = stack;
  const { apiVersion, kind } = stacks;
  const body = { apiVersion, kind, metadata: { ...metadata, name: metadata.name ?? "" }, spec };
  try {
    const result = await applyOwned(target, { resource: stacks, body }, { fieldManager: fieldManagers.operator });
    switch (result.kind) {
      case "written":
        return "written";
      case "absent":
      case "changed":
        return "changed";
      case "former":
      case "foreign":
        return result;
    }
  } catch (error) {
    const rejection = rejectionIn(error);
    if (!rejection) throw error;
    return { kind: "rejected", rejection };
  }
}

/** Returns those that need no further attempt. */
async function reportCancelled(
  { client, report }: PullRequestTools,
  previews: readonly CancelledReport[],
  { view, signal }: PerformContext<PullRequestsView>,
): Promise<CancelledPreview[]> {
  const { metadata, spec } = view.stack;
  const { namespace = "", name = "" } = metadata;
  const settings = reportSettings(spec);
  const target = settings && targetOf(settings, spec.projectRepo || undefined);
  if (!target) return [...previews];
  const secret = await findSecret(client, { namespace, name: settings.secretRef.name }, signal);
  if (!secret || secret === "forbidden") return [];
  const access = { target, secret: { name: settings.secretRef.name, values: secretValues(secret.data) } };
  const answered: CancelledPreview[] = [];
  for (const { number, commit, description } of previews) {
    const status = { context: previewContext(namespace, name), state: "error", description } as const;
    if ((await report(access, { commit, status, signal })) === "unavailable") break;
    answered.push({ number, commit });
  }
  return answered;
}

/** A Stack is deleted only when its run has ended, so the run is cancelled first. */
async function deletePreviews(target: OwnedTarget, previews: readonly Stack[]): Promise<PerformedStep> {
  for (const { metadata, status } of previews) {
    const { name = "", namespace = "", uid } = metadata;
    const owned = { ...target, ...(uid !== undefined && { uid }) };
    const destination = { resource: stacks, ref: { name, namespace } };
    const running = status?.currentUpdate?.name;
    if (running !== undefined) {
      const body = { metadata: { annotations: { [cancellationRequestAnnotation]: running } } };
      await patchOwned(owned, destination, { body, fieldManager: fieldManagers.operator });
    }
    const result = await deleteOwned(owned, destination, { propagationPolicy: "Background" });
    if (result.kind === "changed") return stepStale;
  }
  return stepDone;
}
