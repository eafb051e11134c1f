/** All writes of the Workspace controller. Each can be done twice with the effect of once. */
import { fieldManagers, statefulSetNameOf, type Update, type WorkspaceStatus } from "@pko/api";
import {
  ApiError,
  applyOwned,
  asOwner,
  builtin,
  deleteOwned,
  findOwnership,
  isAlreadyExists,
  isConflict,
  isNotFound,
  keyOf,
  patchOwned,
  type Client,
  type Key,
  type Known,
  type Occupied,
  type OwnedTarget,
  type OwnedWrite,
  type Store,
} from "@pko/kube";
import { assertNever } from "@pko/rpc";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Service } from "kubernetes-types/core/v1";

import type { Authority, Preparation, Preparations } from "../agents/agents.ts";
import { workspaces } from "../kinds.ts";
import { buildCertificateSecret, type BuiltObjects } from "./build-objects.ts";
import { certificateNameOf, podNameOf, podRetriedAnnotation, putAwayAnnotation } from "./names.ts";
import { podOwner } from "./pod-owner.ts";
import { isOurOwnLack, podFor } from "./observe-inputs.ts";
import { unfinishedNow } from "./observe.ts";
import type { Performed, Plan, Step } from "./plan.ts";
import { isServing, type WorkspaceView } from "./view.ts";

export interface Performer {
  /** A fenced one. */
  readonly client: Client;
  readonly updates: Store<Update>;
  readonly authority: Pick<Authority, "workspaceCertificate">;
  readonly preparations: Preparations;
  /** Has another workspace looked at. */
  readonly wake: (key: Key) => void;
  readonly signal: AbortSignal;
}

type Writer = Pick<Performer, "client" | "signal">;

export async function performWorkspace(performer: Performer, view: WorkspaceView, plan: Plan): Promise<Performed> {
  const made: Step[] = [];
  const performed: Performed = { made };
  if (plan.steps.some(({ kind }) => making.has(kind)) && !(await isStillThere(performer, view))) return performed;
  if (!(await isPodFree(performer, view, plan))) return { isStale: true };
  const occupied = await occupiedNames(performer, view, plan);
  if (occupied.length > 0) return { occupied };
  for (const step of plan.steps) {
    Object.assign(performed, await performStep(performer, view, step));
    // What the API server refuses, or somebody else has, ends the pass; a preparation is always the last step.
    if (performed.refusal !== undefined || performed.occupied !== undefined || performed.isStale) break;
    made.push(step);
  }
  return performed;
}

const making: ReadonlySet<Step["kind"]> = new Set(["issueCertificate", "applyObjects"]);

/**
 * The garbage collector takes what a Workspace owns once it is gone, which the store may not know yet: what is missed then
 * is not made anew.
 */
async function isStillThere({ client, signal }: Writer, view: WorkspaceView): Promise<boolean> {
  const { name = "", namespace = "", uid } = view.workspace.metadata;
  const present = await client.find(workspaces, { namespace, name }, { signal });
  return present?.metadata.uid === uid && present?.metadata.deletionTimestamp === undefined;
}

/**
 * Before the first of several objects is created, all their names are read: nothing is left half done where one of them
 * belongs to somebody else, and all of them are reported at once. Each write checks again.
 */
async function occupiedNames(writer: Writer, view: WorkspaceView, { steps }: Plan): Promise<Occupied[]> {
  if (!steps.some(({ kind }) => kind === "applyObjects")) return [];
  const { name = "", namespace = "" } = view.workspace.metadata;
  const common = { namespace, name: statefulSetNameOf(name) };
  const names = [
    { resource: builtin.statefulSets, ref: common },
    { resource: builtin.services, ref: common },
    { resource: builtin.secrets, ref: { namespace, name: certificateNameOf(name) } },
  ];
  const found = await Promise.all(names.map((each) => findOwnership(targetOf(writer, view), each)));
  return found.flatMap((ownership): Occupied[] => {
    if (ownership.kind === "dependent") return [{ kind: "foreign", occupant: ownership.occupant }];
    return ownership.kind === "former" || ownership.kind === "foreign" ? [ownership] : [];
  });
}

const targetOf = ({ client, signal }: Writer, { workspace }: WorkspaceView): OwnedTarget => ({
  client,
  signal,
  owner: asOwner(workspaces, workspace),
});

/** What may take the pod away, or replace it. */
const removing: ReadonlySet<Step["kind"]> = new Set(["sleep", "deletePod", "applyObjects", "mendStatefulSet"]);

/**
 * A store may be half a minute old, and not show the Update that runs in the pod: before that is taken away, the API server
 * is asked (docs/adr/0010-stores-prove-nothing.md). What the plan knew of was decided with it.
 */
async function isPodFree(performer: Performer, view: WorkspaceView, { steps }: Plan): Promise<boolean> {
  if (!steps.some(({ kind }) => removing.has(kind))) return true;
  const updates = await unfinishedNow(performer, view.workspace);
  if (!updates) return true;
  if (steps.some(({ kind }) => kind === "sleep")) return updates.length === 0;
  const known = new Set(view.updates.filter(({ phase }) => phase === "onPod").map(({ name }) => name));
  return updates.every(({ name, phase }) => phase !== "onPod" || known.has(name));
}

const fieldManager = fieldManagers.operator;

async function performStep(performer: Performer, view: WorkspaceView, step: Step): Promise<Performed> {
  const { preparations } = performer;
  const { name = "", namespace = "" } = view.workspace.metadata;
  const target = targetOf(performer, view);
  switch (step.kind) {
    case "issueCertificate":
      return await issueCertificate(performer, view);
    case "applyObjects":
      return await applyObjects(performer, view, step);
    case "mendStatefulSet": {
      const write = { resource: builtin.statefulSets, body: step.objects.statefulSet };
      const { uid } = step;
      return writtenAs(await applyOwned({ ...target, uid }, write, { fieldManager, create: false }));
    }
    case "sleep": {
      const annotations = step.putAwayFor !== undefined && { [putAwayAnnotation]: String(step.putAwayFor) };
      const body = { metadata: { ...(annotations && { annotations }) }, spec: { replicas: 0 } };
      const place = { resource: builtin.statefulSets, ref: { namespace, name: statefulSetNameOf(name) } };
      return writtenAs(await patchOwned({ ...target, uid: step.uid }, place, { body, fieldManager }));
    }
    case "deletePod":
      return await deletePod(performer, view, step);
    case "retryPod": {
      const annotations = { [podRetriedAnnotation]: new Date(view.now).toISOString() };
      const place = { resource: builtin.statefulSets, ref: { namespace, name: statefulSetNameOf(name) } };
      const body = { metadata: { annotations } };
      return writtenAs(await patchOwned({ ...target, uid: step.uid }, place, { body, fieldManager }));
    }
    case "prepare":
      return { preparation: ensure(preparations, step) };
    case "forget":
      preparations.forget({ namespace, name });
      return {};
    case "look":
      if (step.key !== keyOf(view.workspace)) performer.wake(step.key);
      return {};
    default:
      return assertNever(step);
  }
}

async function issueCertificate(performer: Performer, view: WorkspaceView): Promise<Performed> {
  const { workspace } = view;
  const { name = "", namespace = "" } = workspace.metadata;
  const certificate = await performer.authority.workspaceCertificate({ namespace, name });
  const write = { resource: builtin.secrets, body: buildCertificateSecret(workspace, certificate) };
  try {
    return occupiedBy(await applyOwned(targetOf(performer, view), write, { fieldManager }));
  } catch (error) {
    if (!(error instanceof ApiError) || !isRefusal(error)) throw error;
    // A workspace that serves goes on with the certificate that it has; each pass tries again.
    if (isServing(view)) return {};
    return { refusal: certificateRefused(certificateNameOf(name), error.explanation) };
  }
}

const certificateRefused = (secret: string, explanation: string): string =>
  `the Secret ${secret} with the agent's certificate could not be written: ${explanation}; it is tried again every minute`;

function ensure(preparations: Preparations, { pod, request, again }: Extract<Step, { kind: "prepare" }>): Preparation {
  const preparation = preparations.ensure(pod, request);
  if (!again || preparation.state !== "done" || preparation.result.ok) return preparation;
  preparations.retry(pod);
  return preparations.ensure(pod, request);
}

async function applyObjects(
  writer: Writer,
  view: WorkspaceView,
  { objects }: Extract<Step, { kind: "applyObjects" }>,
): Promise<Performed> {
  const target = targetOf(writer, view);
  const options = { fieldManager, fieldValidation: "Strict" } as const;
  try {
    if (view.statefulSet?.builtHash !== objects.hash) await judge(writer, view, objects);
    const service = await applyOwned(target, { resource: builtin.services, body: objects.service }, options);
    if (service.kind !== "written") return occupiedBy(service);
    // One that was deleted since the plan saw it is created by a later pass.
    const uid = view.statefulSet?.uid;
    const seen = uid === undefined ? target : { ...target, uid };
    const write = { resource: builtin.statefulSets, body: objects.statefulSet };
    return writtenAs(await applyOwned(seen, write, { ...options, create: uid === undefined }));
  } catch (error) {
    if (!(error instanceof ApiError) || !isRefusal(error)) throw error;
    if (!isImmutable(error)) return { refusal: error.explanation };
    return await replaceStatefulSet(writer, view);
  }
}

/**
 * Dry runs of the objects, and of the pod itself: only there do admission and quota have their say. They are creations,
 * since to an apply with an unknown field the API server answers with an internal error.
 */
async function judge(
  { client, signal }: Writer,
  view: WorkspaceView,
  { statefulSet, service }: BuiltObjects,
): Promise<void> {
  const options = { dryRun: true, fieldValidation: "Strict", signal } as const;
  const { spec, inputs } = view;
  if (spec.ok && inputs?.pod.ok) {
    const pod = podFor(spec.value, inputs.pod.template);
    await unlessBeside(client.create(builtin.pods, pod, options));
  }
  await unlessBeside(client.create(builtin.services, service as Known<Service>, options));
  await unlessBeside(client.create(builtin.statefulSets, statefulSet as Known<StatefulSet>, options));
}

/** Whatever says nothing about the object itself. */
async function unlessBeside(trial: Promise<unknown>): Promise<void> {
  try {
    await trial;
  } catch (error) {
    // One of that name is there already: the new one was found good before that was noticed.
    if (isAlreadyExists(error)) return;
    // A full quota frees itself when the former pod goes; a pod that then does not come about is explained later.
    if (error instanceof ApiError && (isOurOwnLack(error) || error.explanation.includes("exceeded quota"))) return;
    throw error;
  }
}

/** The API server has looked at it and says no, in words for whoever wrote the template. */
function isRefusal(error: ApiError): boolean {
  return [400, 403, 422].includes(error.status) && !isOurOwnLack(error);
}

/** A StatefulSet that another operator made may differ where nothing can be changed. */
const isImmutable = ({ explanation }: ApiError): boolean =>
  explanation.includes("updates to statefulset spec for fields other than");

async function replaceStatefulSet(writer: Writer, view: WorkspaceView): Promise<Performed> {
  const { name = "", namespace = "" } = view.workspace.metadata;
  const place = { resource: builtin.statefulSets, ref: { namespace, name: statefulSetNameOf(name) } };
  return occupiedBy(await deleteOwned(targetOf(writer, view), place, { propagationPolicy: "Foreground" }));
}

/** Only a pod whose controller is the StatefulSet whose controller is the Workspace. */
async function deletePod(
  writer: Writer,
  view: WorkspaceView,
  { uid, graceSeconds }: Extract<Step, { kind: "deletePod" }>,
): Promise<Performed> {
  const { client, signal } = writer;
  const { name = "", namespace = "" } = view.workspace.metadata;
  const set = { resource: builtin.statefulSets, ref: { namespace, name: statefulSetNameOf(name) } };
  const found = await findOwnership(targetOf(writer, view), set);
  if (found.kind !== "ours") return {};
  const owner = podOwner(name, found.version.uid);
  const pod = { resource: builtin.pods, ref: { namespace, name: podNameOf(name) } };
  const options = graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds };
  return occupiedBy(await deleteOwned({ client, signal, owner, uid }, pod, options));
}

/** What was deleted meanwhile is seen by the next pass. */
function occupiedBy(write: OwnedWrite<unknown>): Performed {
  if (write.kind === "changed") return { isStale: true };
  return write.kind === "former" || write.kind === "foreign" ? { occupied: [write] } : {};
}

function writtenAs(write: OwnedWrite<Known<StatefulSet>>): Performed {
  if (write.kind !== "written") return occupiedBy(write);
  const { uid = "", generation = 0 } = write.object.metadata;
  return { written: { uid, generation } };
}

/** What is deleted, or another object by now, is seen by the next pass. */
async function unlessGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
    return undefined;
  }
}

export async function writeStatus(
  { client, signal }: Writer,
  view: WorkspaceView,
  status: WorkspaceStatus,
): Promise<void> {
  const { name = "", namespace = "", uid } = view.workspace.metadata;
  const { apiVersion, kind } = workspaces;
  // With the uid, the status of a former object of this name is not written to its successor.
  const metadata = { name, namespace, ...(uid !== undefined && { uid }) };
  const body = { apiVersion, kind, metadata, status };
  const options = { fieldManager: fieldManagers.workspaceStatus, subresource: "status", signal } as const;
  await unlessGone(client.apply(workspaces, body, options));
}
