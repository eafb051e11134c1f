/** All that is done about an Update: each step can be done again, and a crash after any of them loses nothing. */
import { fieldManagers, type UpdateStatus } from "@pko/api";
import { isBadRequest, isConflict, isInvalid, isNotFound, type Client } from "@pko/kube";
import { assertNever } from "@pko/rpc";

import type { Runs } from "../agents/agents.ts";
import { updates } from "../kinds.ts";
import { isComplete } from "./conditions.ts";
import { updateFinalizer } from "./finalizer.ts";
import { keepSecret } from "./keep-secret.ts";
import { isProven, isStillReady } from "./observe.ts";
import type { Ending, Kept } from "./outcome.ts";
import type { Keepsakes, Plan, Step } from "./plan.ts";
import { statusOf, wordlessStatusOf } from "./status.ts";
import type { UpdateView } from "./view.ts";

interface Performer {
  /** Fenced: writes nothing unless this process leads. */
  readonly client: Client;
  readonly runs: Runs;
  readonly signal: AbortSignal;
}

type Performed =
  /** `lost`, in sentences: what could not be kept of an operation that has ended. */
  | { readonly kind: "done"; readonly lost?: readonly string[] }
  /** The world is not as it was seen: look again. */
  | { readonly kind: "stale" }
  /** The API server does not say what the stores do, which may be half a minute old where a watch has died. */
  | { readonly kind: "unproven" }
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
  { ending, keep, proof }: Extract<Step, { kind: "end" }>,
): Promise<Performed> {
  const { client, runs, signal } = performer;
  if (proof !== undefined && !(await isProven(client, view, { proof, signal }))) return { kind: "unproven" };
  // No request of ours may reach a pod that is not the recorded one.
  if (!ending.result) runs.forget(uidOf(view));
  const { kept, lost } = await keepAll(performer, view, keep);
  const unsaid = await reportEnd(performer, view, { ending, kept });
  runs.forget(uidOf(view));
  return { kind: "done", lost: [...lost, ...unsaid] };
}

/** That it has ended is told in any case: without the words of others, where the API server does not take them. */
async function reportEnd(
  performer: Performer,
  view: UpdateView,
  { ending, kept }: { readonly ending: Ending; readonly kept: Kept },
): Promise<string[]> {
  try {
    await report(performer, view, statusOf(view, { kind: "ended", ending, kept }));
    return [];
  } catch (error) {
    if (!isBadRequest(error) && !isInvalid(error)) throw error;
    await report(performer, view, wordlessStatusOf(view, ending, kept));
    return [`What the operation said could not be stored: ${error.explanation}`];
  }
}

async function keepAll(
  { client, signal }: Performer,
  view: UpdateView,
  keep: Keepsakes,
): Promise<{ readonly kept: Kept; readonly lost: readonly string[] }> {
  const keeper = { client, signal, update: view.update };
  const outputs = keep.outputs && (await keepSecret(keeper, keep.outputs));
  const stdout = keep.stdout && (await keepSecret(keeper, keep.stdout));
  const lost = [outputs, stdout].flatMap((keeping) => (keeping?.problem === undefined ? [] : [keeping.problem]));
  const outputsName = outputs?.name ?? keep.unreadOutputs;
  const kept: Kept = {
    // Named also where it could not be created: without a name, there were no outputs. Whoever reads it checks its owner.
    ...(outputsName !== undefined && { outputs: outputsName }),
    ...(stdout && stdout.problem === undefined && { stdout: stdout.name }),
    notes: [...keep.notes, ...lost],
  };
  return { kept, lost };
}

async function expire({ client, signal }: Performer, view: UpdateView): Promise<Performed> {
  const { resourceVersion } = view.update.metadata;
  const version = { uid: uidOf(view), ...(resourceVersion !== undefined && { resourceVersion }) };
  await client.delete(updates, refOf(view), { ...version, propagationPolicy: "Background", signal });
  return done;
}
