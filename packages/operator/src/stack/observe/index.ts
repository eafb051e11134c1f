/** All reads of a Stack's reconcile, from stores, from the API server and from the pollers of sources. */
import {
  normalizeStack,
  stackFinalizer,
  workspaceNameOf,
  type Approval,
  type Stack,
  type Update,
  type Workspace,
} from "@pko/api";
import {
  asOwner,
  isOwnedBy,
  classifyOwnership,
  defined,
  namespaceOf,
  refKey,
  type Client,
  type Key,
  type Moment,
  type Store,
} from "@pko/kube";

import { stacks as stackResource, updates as updateResource, workspaces as workspaceResource } from "../../kinds.ts";
import type { PolicyProbe } from "../../approvals/policy-probe.ts";
import { approvalPlanIndex } from "../../shared/approvals.ts";
import { findCondition } from "../../shared/objects/conditions.ts";
import type { Slots } from "../../shared/channels/slots.ts";
import { isAbandoned } from "../../shared/pull-request-preview.ts";
import { reportSettings, unreportedUpdates } from "../../shared/reports.ts";
import { leastApproval, type ClassReader } from "../../shared/workspace-classes.ts";
import type { Suspension } from "../../shared/channels/suspension.ts";
import { plannedBy } from "../history/approval.ts";
import { updateFacts } from "../history/update-facts.ts";
import { updateOwnerIndex, updateStackIndex } from "../indexes.ts";
import * as messages from "../messages.ts";
import { observeDependents } from "./dependents.ts";
import { readConfigInputs } from "./inputs.ts";
import { observeOutputs } from "./outputs.ts";
import { observeCycle, observePrerequisites, observeStackOutputs } from "./prerequisites.ts";
import { readersIn, type Readers } from "./readers.ts";
import { observeSource, type SourceWorld } from "./source.ts";
import {
  suspendedBy,
  validSpec,
  type Obstacle,
  type StackView,
  type UpdateFacts,
  type WorkspaceFacts,
} from "../view.ts";

export interface StackWorld extends SourceWorld {
  readonly client: Client;
  readonly stacks: Store<Stack>;
  readonly workspaces: Store<Workspace>;
  readonly updates: Store<Update>;
  /** With `approvalIndexers`. */
  readonly approvals: Store<Approval>;
  readonly approvalPolicy: Pick<PolicyProbe, "state">;
  readonly classOf: ClassReader;
  readonly minResyncSeconds?: number;
  readonly suspension: Suspension;
  /** By Workspace, which has the name of its Stack. */
  readonly slots: Slots;
}

/** Why the Stack is stalled, and since when. */
export type StackMemory = Obstacle;

/** Undefined for a Stack that does not exist. */
export async function observeStack(
  world: StackWorld,
  key: Key,
  { now, memory: obstacle, signal }: Moment<StackMemory>,
): Promise<StackView | undefined> {
  const stack = world.stacks.get(key);
  if (!stack) return undefined;
  const readers = readersIn(namespaceOf(key), { client: world.client, signal });
  const updates = await ownedUpdates(world, stack, signal);
  const operatorSuspended = world.suspension.isOn;
  return {
    now,
    stack,
    updates,
    orphans: orphanedUpdates(world, key, stack),
    workspace: workspaceFacts(world, stack),
    dependents: observeDependents(world.stacks, stack),
    unreported: observeUnreported(world, stack),
    approvals: approvalsFor(world, stack),
    approvalPolicy: world.approvalPolicy.state(stack.metadata.namespace ?? ""),
    workspaceClass: world.classOf(stack.metadata.namespace ?? ""),
    outputs: await observeOutputs({ stack, updates }, readers),
    operatorSuspended,
    slot: world.slots.state(key),
    ...(await observeSpec(world, { key, stack, operatorSuspended }, readers)),
    readObjects: readers.objects,
    ...(obstacle && { obstacle }),
  };
}

type SpecView = Pick<
  StackView,
  "spec" | "source" | "followed" | "cycle" | "prerequisites" | "stackOutputs" | "configInputs" | "configObjects"
>;

interface Subject {
  readonly key: Key;
  readonly stack: Stack;
  readonly operatorSuspended: boolean;
}

/** Everything that the spec refers to. Nothing is read for a suspended Stack, and nothing is followed. */
async function observeSpec(world: StackWorld, subject: Subject, readers: Readers): Promise<SpecView> {
  const { key, stack } = subject;
  const { minResyncSeconds } = world;
  const least = leastApproval(world.classOf(stack.metadata.namespace ?? ""));
  const normal = normalizeStack(stack, { ...defined({ minResyncSeconds }), leastApproval: least });
  if (suspendedBy(subject).length > 0) {
    return { spec: normal, source: { kind: "pending", what: messages.endOfSuspension }, ...noReferences };
  }
  const spec = validSpec({ spec: normal });
  if (!spec) return { spec: normal, source: { kind: "pending", what: messages.validSpec }, ...noReferences };
  const { values, objects } = await readConfigInputs(spec, readers);
  const readSecret = async (name: string) => (await readers.secret(name))?.data;
  return {
    spec: normal,
    ...(await observeSource(world, { key, stack, spec, readSecret })),
    cycle: observeCycle(world.stacks, stack, spec),
    prerequisites: observePrerequisites(world.stacks, spec),
    stackOutputs: await observeStackOutputs(world.stacks, spec, readers),
    configInputs: values,
    configObjects: objects,
  };
}

const noReferences = { cycle: [], prerequisites: [], stackOutputs: [], configInputs: [], configObjects: [] };

async function ownedUpdates(world: StackWorld, stack: Stack, signal: AbortSignal): Promise<UpdateFacts[]> {
  const cached = world.updates.byIndex(updateOwnerIndex, stack.metadata.uid ?? "");
  const owned = [...cached, ...(await uncachedUpdates(world, { stack, cached, signal }))];
  return owned.map(updateFacts).toSorted((a, b) => a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1));
}

interface CachedUpdates {
  readonly stack: Stack;
  readonly cached: readonly Update[];
  readonly signal: AbortSignal;
}

/**
 * Updates in the status, if the cache of Updates is older than that of Stacks. Without the current one, another would be
 * created: the status changes with a plan, and so does the name of the next one. Its result is left out: until the cache shows
 * it, its finalizer would stay after the next result is recorded, and it would then be recorded again, as the last one.
 * Without the one with the plan that is to be applied, that plan would be made again, and would need another approval.
 */
async function uncachedUpdates(world: StackWorld, given: CachedUpdates): Promise<Update[]> {
  const { name } = given.stack.status?.currentUpdate ?? {};
  const current = await uncachedUpdate(world, given, name);
  const planned = plannedBy(given);
  const plan = planned === name ? undefined : await uncachedUpdate(world, given, planned);
  return [...(current ? [withoutResult(current)] : []), ...(plan ? [plan] : [])];
}

async function uncachedUpdate(
  { client }: StackWorld,
  { stack, cached, signal }: CachedUpdates,
  name: string | undefined,
): Promise<Update | undefined> {
  if (name === undefined || cached.some(({ metadata }) => metadata.name === name)) return undefined;
  const update = await client.find(updateResource, { namespace: stack.metadata.namespace ?? "", name }, { signal });
  return update && isOwnedBy(update, asOwner(stackResource, stack)) ? update : undefined;
}

function withoutResult(update: Update): Update {
  const { conditions: _, ...status } = update.status ?? {};
  return { ...update, status };
}

/** Others report what became of the preview of a pull request, or nothing is reported. */
function observeUnreported({ stacks, updates, classOf, suspension }: StackWorld, stack: Stack): string[] {
  if (!isAbandoned(stacks, stack) || !reportSettings(stack, classOf)) return [];
  const isSuspended = suspendedBy({ stack, operatorSuspended: suspension.isOn }).length > 0;
  const owned = updates.byIndex(updateOwnerIndex, stack.metadata.uid ?? "");
  return unreportedUpdates({ stack, updates: owned, isSuspended });
}

function approvalsFor({ approvals }: StackWorld, { metadata, status }: Stack): readonly Approval[] {
  const { updateName } = status?.approval ?? {};
  if (updateName === undefined) return [];
  return approvals.byIndex(approvalPlanIndex, refKey({ namespace: metadata.namespace ?? "", name: updateName }));
}

/** Updates with the Stack's finalizer that are not owned by the given Stack of that key; undefined if there is none. */
export function orphanedUpdates(
  { updates }: Pick<StackWorld, "updates">,
  key: Key,
  stack: Stack | undefined,
): Update[] {
  const hasFinalizer = ({ metadata }: Update): boolean => metadata.finalizers?.includes(stackFinalizer) ?? false;
  const isOwned = (update: Update): boolean => stack !== undefined && isOwnedBy(update, asOwner(stackResource, stack));
  return updates.activeByIndex(updateStackIndex, key).filter((update) => hasFinalizer(update) && !isOwned(update));
}

function workspaceFacts({ workspaces }: StackWorld, stack: Stack): WorkspaceFacts {
  const { name = "", namespace = "" } = stack.metadata;
  const object = workspaces.get(refKey({ namespace, name: workspaceNameOf(name) }));
  if (!object) return { kind: "absent" };
  const ownership = classifyOwnership({ ...object, kind: workspaceResource.kind }, asOwner(stackResource, stack));
  switch (ownership.kind) {
    case "absent":
      return ownership;
    case "former":
      return { kind: "deleting" };
    case "dependent":
    case "foreign":
      return { kind: "foreign", occupant: ownership.occupant };
    case "ours":
      if (object.metadata.deletionTimestamp) return { kind: "deleting" };
      return { kind: "present", object, state: workspaceState(object) };
  }
}

type WorkspaceState = Extract<WorkspaceFacts, { kind: "present" }>["state"];

function workspaceState(workspace: Workspace): WorkspaceState {
  const { metadata, status } = workspace;
  if (status?.observedGeneration !== metadata.generation) {
    return { kind: "preparing", message: messages.workspaceNotObserved };
  }
  const [ready, stalled] = [findCondition(workspace, "Ready"), findCondition(workspace, "Stalled")];
  if (ready?.status === "True") {
    const { warning, unchangedSince } = status ?? {};
    return { kind: "ready", ...(warning && { warning }), ...(unchangedSince && { unchangedSince }) };
  }
  if (stalled?.status === "True") return { kind: "failed", reason: stalled.reason, message: stalled.message };
  return { kind: "preparing", message: ready?.message || messages.workspaceNotReady };
}
