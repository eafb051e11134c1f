/** The steps that create and apply the Service and the StatefulSet. */
import { statefulSetNameOf } from "@pko/api";
import {
  ApiError,
  applyOwned,
  builtin,
  deleteOwned,
  findOwnership,
  isAlreadyExists,
  stepStale,
  type ApiObject,
  type Occupied,
} from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Service } from "kubernetes-types/core/v1";

import { certificateNameOf } from "../names.ts";
import type { BuiltObjects } from "../pod/build-objects.ts";
import type { Step } from "../steps.ts";
import {
  fieldManager,
  isOperatorDenied,
  isPodFree,
  isRejection,
  ownedBy,
  performedBy,
  rejected,
  statefulSetIn,
  workspaceExists,
  wroteStatefulSet,
  type Performer,
  type WorkspaceContext,
  type WorkspacePerformed,
  type Writer,
} from "./owned.ts";
import { admittedWithInitContainer, podFor, withInitContainer } from "./pod.ts";

/**
 * Before the first of several objects is created, all their names are read: nothing is left half done where one of them
 * belongs to another owner, and all of them are reported together. Each write checks again.
 */
export async function checkNames(writer: Writer, context: WorkspaceContext): Promise<WorkspacePerformed> {
  const { name = "", namespace = "" } = context.view.workspace.metadata;
  const common = { namespace, name: statefulSetNameOf(name) };
  const names = [
    { resource: builtin.statefulSets, ref: common },
    { resource: builtin.services, ref: common },
    { resource: builtin.secrets, ref: { namespace, name: certificateNameOf(name) } },
  ];
  const found = await Promise.all(names.map((each) => findOwnership(ownedBy(writer, context), each)));
  const occupied = found.flatMap((ownership): Occupied[] => {
    if (ownership.kind === "dependent") return [{ kind: "foreign", occupant: ownership.occupant }];
    return ownership.kind === "former" || ownership.kind === "foreign" ? [ownership] : [];
  });
  const lacksCertificate = found.at(-1)?.kind === "absent";
  return { kind: "replan", facts: { occupied, ...(lacksCertificate && { certificate: "missing" }) } };
}

export async function applyObjects(
  performer: Performer,
  { objects }: Extract<Step, { kind: "applyObjects" }>,
  context: WorkspaceContext,
): Promise<WorkspacePerformed> {
  if (!(await workspaceExists(performer, context)) || !(await isPodFree(performer, context))) return stepStale;
  try {
    if (context.view.statefulSet?.builtHash !== objects.hash) await dryRunObjects(performer, objects, context);
    return await writeObjects(performer, objects, context);
  } catch (error) {
    if (!(error instanceof ApiError) || !isRejection(error)) throw error;
    if (isImmutable(error)) return await replaceStatefulSet(performer, context);
    return withInitContainer(context.view) ?? rejected(error.explanation);
  }
}

async function writeObjects(
  writer: Writer,
  objects: BuiltObjects,
  context: WorkspaceContext,
): Promise<WorkspacePerformed> {
  const target = ownedBy(writer, context);
  // Without a StatefulSet, nothing was created yet.
  const found = context.view.statefulSet ? {} : { found: {} };
  const options = { fieldManager, fieldValidation: "Strict", ...found } as const;
  const service = await applyOwned(target, { resource: builtin.services, body: objects.service }, options);
  if (service.kind !== "written") return performedBy(service);
  // A StatefulSet that was deleted after it was observed is created by a later pass.
  const uid = context.view.statefulSet?.uid;
  const observed = uid === undefined ? target : { ...target, uid };
  const write = { resource: builtin.statefulSets, body: objects.statefulSet };
  return wroteStatefulSet(await applyOwned(observed, write, { ...options, create: uid === undefined }));
}

/**
 * Dry runs of the objects, and of the pod itself, because admission and quotas apply to pods only. They are creations,
 * because the API server responds to an apply with an unknown field with an internal error.
 */
async function dryRunObjects(
  writer: Writer,
  { statefulSet, service }: BuiltObjects,
  context: WorkspaceContext,
): Promise<void> {
  const { client } = writer;
  const { view, signal } = context;
  const options = { dryRun: true, fieldValidation: "Strict", signal } as const;
  const { spec, inputs } = view;
  if (spec.ok && inputs?.pod.ok) {
    const pod = client.create(builtin.pods, podFor(spec.value, inputs.pod.template), options);
    // The helper container may be what exceeds a quota.
    await ignoringUnrelated(pod, async () => (await admittedWithInitContainer(writer, context)) !== undefined);
  }
  await ignoringUnrelated(client.create(builtin.services, service as ApiObject<Service>, options));
  await ignoringUnrelated(client.create(builtin.statefulSets, statefulSet as ApiObject<StatefulSet>, options));
}

/** Ignores errors that have nothing to do with the object itself. */
async function ignoringUnrelated(
  dryRun: Promise<unknown>,
  exceedsQuotaItself: () => Promise<boolean> = async () => false,
): Promise<void> {
  try {
    await dryRun;
  } catch (error) {
    // The current object has this name. The API server checks the new one before it notices that.
    if (isAlreadyExists(error)) return;
    // A full quota may be freed when the former pod is deleted; a pod that is not created then is explained later.
    const isQuota = error instanceof ApiError && error.explanation.includes("exceeded quota");
    if (isQuota && !(await exceedsQuotaItself())) return;
    if (error instanceof ApiError && isOperatorDenied(error)) return;
    throw error;
  }
}

/** Of a StatefulSet. A Service, which is applied with it, can change those of them that it has. */
const immutableFields: ReadonlySet<string | undefined> = new Set([
  "spec.podManagementPolicy",
  "spec.selector",
  "spec.serviceName",
  "spec.volumeClaimTemplates",
]);

/**
 * A StatefulSet that another operator created may differ in fields that cannot be changed. Up to Kubernetes 1.36, the error
 * does not name them.
 */
const isImmutable = ({ explanation, causes }: ApiError): boolean =>
  explanation.includes("updates to statefulset spec for fields other than") ||
  causes.some(({ field, message }) => immutableFields.has(field) && message?.includes("field is immutable"));

async function replaceStatefulSet(writer: Writer, context: WorkspaceContext): Promise<WorkspacePerformed> {
  const place = statefulSetIn(context.view);
  return performedBy(await deleteOwned(ownedBy(writer, context), place, { propagationPolicy: "Foreground" }));
}
