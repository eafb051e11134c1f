/** All that is done about an Update: each step can be done again, and a crash after any of them loses nothing. */
import { fieldManagers, type UpdateStatus } from "@pko/api";
import {
  builtin,
  isAlreadyExists,
  isConflict,
  isInvalid,
  isNamespaceTerminating,
  isNotFound,
  type Client,
  type Known,
  type ObjectRef,
} from "@pko/kube";
import { assertNever } from "@pko/rpc";
import type { Secret } from "kubernetes-types/core/v1";

import type { Runs } from "../agents/agents.ts";
import { updates } from "../kinds.ts";
import { isComplete } from "./conditions.ts";
import { updateFinalizer } from "./finalizer.ts";
import { isStillReady } from "./observe.ts";
import type { Kept } from "./outcome.ts";
import type { Plan, Step } from "./plan.ts";
import { statusOf } from "./status.ts";
import type { UpdateView } from "./view.ts";

export interface Performer {
  /** Fenced: writes nothing unless this process leads. */
  readonly client: Client;
  readonly runs: Runs;
  readonly signal: AbortSignal;
}

export type Performed =
  | { readonly kind: "done" }
  /** The world is not as it was seen: look again. */
  | { readonly kind: "stale" }
  /** Gone meanwhile: so is all that was to be said of it. */
  | { readonly kind: "gone" };

const done: Performed = { kind: "done" };
const stale: Performed = { kind: "stale" };
const gone: Performed = { kind: "gone" };

export async function performUpdate(performer: Performer, view: UpdateView, plan: Plan): Promise<Performed> {
  try {
    if (isComplete(view.update)) performer.runs.forget(uidOf(view));
    return await performStep(performer, view, plan.step);
  } catch (error) {
    if (isConflict(error)) return stale;
    if (isNotFound(error)) return gone;
    throw error;
  }
}

async function performStep(performer: Performer, view: UpdateView, step: Step): Promise<Performed> {
  switch (step.kind) {
    case "none":
      return done;
    case "report":
      return await report(performer, view, step.status);
    case "intend":
      return await intend(performer, view, step);
    case "guard":
      return await setFinalizers(performer, view, [...finalizersOf(view), updateFinalizer]);
    case "follow":
      performer.runs.ensure(step.pod, step.request);
      return done;
    case "cancel":
      performer.runs.cancel(step.pod, step.runId);
      return await report(performer, view, step.status);
    case "end":
      return await end(performer, view, step);
    case "release": {
      const left = finalizersOf(view).filter((name) => name !== updateFinalizer);
      return await setFinalizers(performer, view, left);
    }
    case "expire":
      return await expire(performer, view);
    default:
      return assertNever(step);
  }
}

const uidOf = ({ update }: UpdateView): string => update.metadata.uid ?? "";
const finalizersOf = ({ update }: UpdateView): readonly string[] => update.metadata.finalizers ?? [];

function refOf({ update }: UpdateView): { readonly namespace: string; readonly name: string } {
  const { namespace = "", name = "" } = update.metadata;
  return { namespace, name };
}

async function intend(
  performer: Performer,
  view: UpdateView,
  { status }: Extract<Step, { kind: "intend" }>,
): Promise<Performed> {
  if (!(await isStillReady(performer.client, view, performer.signal))) return stale;
  return await report(performer, view, status);
}

/** Names the version it was decided on: which pod an Update may run in is never decided on old news. */
async function report({ client, signal }: Performer, view: UpdateView, status: UpdateStatus): Promise<Performed> {
  const { uid, resourceVersion } = view.update.metadata;
  const { apiVersion, kind } = updates;
  const metadata = { ...refOf(view), ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
  await client.apply(
    updates,
    { apiVersion, kind, metadata, status },
    { fieldManager: fieldManagers.updateStatus, subresource: "status", signal },
  );
  return done;
}

async function setFinalizers(
  { client, signal }: Performer,
  view: UpdateView,
  finalizers: readonly string[],
): Promise<Performed> {
  const { uid, resourceVersion } = view.update.metadata;
  const patch = { type: "merge", body: { metadata: { uid, resourceVersion, finalizers } } } as const;
  await client.patch(updates, refOf(view), { patch, fieldManager: fieldManagers.operator, signal });
  return done;
}

/** The Secrets, then status: whoever sees it complete finds all of it. */
async function end(
  performer: Performer,
  view: UpdateView,
  { ending, keep }: Extract<Step, { kind: "end" }>,
): Promise<Performed> {
  const { runs } = performer;
  // No request of ours may reach a pod that is not the recorded one.
  if (!ending.result) runs.forget(uidOf(view));
  const outputs = keep.outputs && (await createSecret(performer, view, keep.outputs));
  const stdout = keep.stdout && (await createSecret(performer, view, keep.stdout));
  const kept: Kept = {
    ...(outputs?.name !== undefined && { outputs: outputs.name }),
    ...(stdout?.name !== undefined && { stdout: stdout.name }),
    notes: [...keep.notes, ...(outputs?.notes ?? []), ...(stdout?.notes ?? [])],
  };
  await report(performer, view, statusOf(view, { kind: "ended", ending, kept }));
  runs.forget(uidOf(view));
  return done;
}

interface Created {
  /** Absent where it could not be made, of which the notes tell. */
  readonly name?: string;
  readonly notes: readonly string[];
}

async function createSecret(performer: Performer, view: UpdateView, secret: Known<Secret>): Promise<Created> {
  const { name = "" } = secret.metadata;
  const problem = await problemOfCreating(performer, view, secret);
  if (problem === undefined) return { name, notes: [] };
  return { notes: [`The Secret ${name} could not be made: ${problem}`] };
}

async function problemOfCreating(
  performer: Performer,
  view: UpdateView,
  secret: Known<Secret>,
): Promise<string | undefined> {
  const { client, signal } = performer;
  try {
    await client.create(builtin.secrets, secret, { fieldManager: fieldManagers.operator, signal });
    return undefined;
  } catch (error) {
    if (isAlreadyExists(error)) return await settleExisting(performer, view, secret);
    if (isInvalid(error) || isNamespaceTerminating(error)) return error.explanation;
    throw error;
  }
}

/** Made before a crash; or left by an Update of the same name that is gone; or a user's, which is not touched. */
async function settleExisting(
  { client, signal }: Performer,
  view: UpdateView,
  secret: Known<Secret>,
): Promise<string | undefined> {
  const { name = "", namespace = "" } = secret.metadata;
  const ref: ObjectRef = { name, namespace };
  const existing = await client.find(builtin.secrets, ref, { signal });
  const owner = existing?.metadata.ownerReferences?.find(({ kind }) => kind === updates.kind);
  if (existing && owner?.uid === uidOf(view)) return undefined;
  if (existing && !owner) return "there is another Secret of that name";
  if (existing?.metadata.uid) await client.delete(builtin.secrets, ref, { uid: existing.metadata.uid, signal });
  await client.create(builtin.secrets, secret, { fieldManager: fieldManagers.operator, signal });
  return undefined;
}

async function expire({ client, signal }: Performer, view: UpdateView): Promise<Performed> {
  await client.delete(updates, refOf(view), { uid: uidOf(view), propagationPolicy: "Background", signal });
  return done;
}
