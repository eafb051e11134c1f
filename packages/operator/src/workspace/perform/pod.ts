/** The steps that delete the pod, or find out why it does not exist. */
import type { NormalWorkspace } from "@pko/api";
import { ApiError, builtin, deleteOwned, findOwnership, stepDone, stepStale, type ApiObject } from "@pko/kube";
import type { Pod, PodTemplateSpec } from "kubernetes-types/core/v1";

import { podNameOf, podOwner } from "../../shared/pods/workspace-pod.ts";
import type { Step } from "../steps.ts";
import type { Admission, WorkspaceView } from "../view.ts";
import {
  isOperatorDenied,
  isPodFree,
  ownedBy,
  performedBy,
  statefulSetIn,
  type Performer,
  type WorkspaceContext,
  type WorkspacePerformed,
  type Writer,
} from "./owned.ts";

/** Deletes only a pod whose controller is the StatefulSet whose controller is the Workspace. */
export async function deletePod(
  performer: Performer,
  { uid, graceSeconds }: Extract<Step, { kind: "deletePod" }>,
  context: WorkspaceContext,
): Promise<WorkspacePerformed> {
  if (!(await isPodFree(performer, context))) return stepStale;
  const { view, signal } = context;
  const { client } = performer;
  const { name = "", namespace = "" } = view.workspace.metadata;
  const found = await findOwnership(ownedBy(performer, context), statefulSetIn(view));
  if (found.kind !== "ours") return stepDone;
  const owner = podOwner(name, found.version.uid);
  const pod = { resource: builtin.pods, ref: { namespace, name: podNameOf(name) } };
  const options = graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds };
  return performedBy(await deleteOwned({ client, signal, owner, uid }, pod, options));
}

export async function dryRunPod(writer: Writer, context: WorkspaceContext): Promise<WorkspacePerformed> {
  const admission = await admissionOf(writer, context);
  const other = admission.kind === "rejected" ? await admittedWithInitContainer(writer, context) : undefined;
  return other ?? { kind: "replan", facts: { admission } };
}

/** A LimitRange or a policy may reject only the helper container. Undefined if there is none. */
export function withInitContainer({ inputs }: WorkspaceView): Replan | undefined {
  if (!inputs?.pod.ok || !inputs.pod.withInitContainer) return undefined;
  return { kind: "replan", facts: { inputs: { ...inputs, pod: { ok: true, ...inputs.pod.withInitContainer } } } };
}

type Replan = Extract<WorkspacePerformed, { kind: "replan" }>;

/** Undefined also if the API server rejects it, too. */
export async function admittedWithInitContainer(
  writer: Writer,
  context: WorkspaceContext,
): Promise<WorkspacePerformed | undefined> {
  const other = withInitContainer(context.view);
  if (!other) return undefined;
  const admission = await admissionOf(writer, { ...context, view: { ...context.view, ...other.facts } });
  return admission.kind === "rejected" ? undefined : other;
}

async function admissionOf(writer: Writer, context: WorkspaceContext): Promise<Admission> {
  const { view, signal } = context;
  const { spec, inputs } = view;
  if (!spec.ok || !inputs?.pod.ok) return { kind: "unknown" };
  try {
    await writer.client.create(builtin.pods, podFor(spec.value, inputs.pod.template), { dryRun: true, signal });
    return { kind: "admitted" };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500 || isOperatorDenied(error)) return { kind: "unknown" };
    if (error.reason === "AlreadyExists") return await ownerOfPodName(writer, context);
    return { kind: "rejected", message: error.explanation };
  }
}

/** Admission comes before the check of the name, so a pod whose name is free by now would be admitted. */
async function ownerOfPodName({ client }: Writer, { view, signal }: WorkspaceContext): Promise<Admission> {
  const { name = "", namespace = "" } = view.workspace.metadata;
  const target = { client, owner: podOwner(name, view.statefulSet?.uid), signal };
  const ownership = await findOwnership(target, { resource: builtin.pods, ref: { namespace, name: podNameOf(name) } });
  switch (ownership.kind) {
    case "absent":
      return { kind: "admitted" };
    case "ours":
      return { kind: "unknown" };
    case "dependent":
      return { kind: "occupied", occupied: { kind: "foreign", occupant: ownership.occupant } };
    case "former":
    case "foreign":
      return { kind: "occupied", occupied: ownership };
  }
}

/** The pod that the StatefulSet would create. */
export function podFor({ name, namespace }: NormalWorkspace, template: PodTemplateSpec): ApiObject<Pod> {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...template.metadata, name: podNameOf(name), namespace },
    ...(template.spec && { spec: template.spec }),
  };
}
