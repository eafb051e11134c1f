/** All reads of a Stack's reconcile. What can be expected to be missing becomes data. */
import { normaliseStack, workspaceNameOf, type NormalStack, type Stack, type Update, type Workspace } from "@pko/api";
import {
  asOwner,
  builtin,
  isForbidden,
  isNotFound,
  judgeOwnership,
  parseKey,
  refKey,
  type Client,
  type Key,
  type Known,
  type KubeObject,
  type Occupant,
  type Store,
} from "@pko/kube";
import { assertNever } from "@pko/rpc";
import type { Secret } from "kubernetes-types/core/v1";

import { stacks as stackResource, updates as updateResource, workspaces as workspaceResource } from "../kinds.ts";
import { versionOf, type ReferenceWatch } from "../inputs/reference-watch.ts";
import { foreignText } from "../ownership.ts";
import type { SourceView } from "../sources/source-view.ts";
import { updateOwnerIndex } from "./indexes.ts";
import { missingInputs, readConfigInputs, type Read, type Readers } from "./observe-inputs.ts";
import { observeSource, type SourceWorld } from "./observe-source.ts";
import { outputKeyOf, stackOutputsSecretOf } from "../shared/output-keys.ts";
import { outputValues, versionsOf } from "./outputs.ts";
import { planStack, unnotedOf } from "./plan.ts";
import { cycleFrom, dependenciesOf, outputRefsOf, prerequisiteView, type OutputRef } from "./prerequisites.ts";
import { updateView } from "./update-view.ts";
import type { OutputsView, StackOutputView, StackView, UpdateView, WorkspaceView } from "./view.ts";

export interface StackWorld extends SourceWorld {
  readonly client: Client;
  readonly stacks: Store<Stack>;
  readonly workspaces: Store<Workspace>;
  readonly updates: Store<Update>;
  readonly references: ReferenceWatch;
  readonly wake: (key: Key) => void;
}

interface Moment extends Pick<StackView, "now" | "conflictSince"> {
  readonly signal: AbortSignal;
}

/** Undefined for a Stack that is gone. */
export async function observeStack(world: StackWorld, key: Key, moment: Moment): Promise<StackView | undefined> {
  const stack = world.stacks.get(key);
  if (!stack) {
    world.git.forget(key);
    world.flux.forget(key);
    world.references.forget(userOf(key));
    return undefined;
  }
  const reads = readersOf(world.client, parseKey(key).namespace ?? "", moment.signal);
  const normal = normaliseStack(stack);
  const updates = updatesOf(world, stack);
  const configInputs = normal.ok ? await readConfigInputs(normal.value, reads) : noConfigInputs;
  world.references.follow(userOf(key), { objects: configInputs.objects, wake: () => world.wake(key) });
  const view: StackView = {
    now: moment.now,
    stack,
    spec: normal,
    updates,
    workspace: workspaceView(world, stack),
    source: await sourceOf(world, { key, stack, spec: normal.ok ? normal.value : undefined, reads }),
    cycle: normal.ok ? cycleOf(world, stack, normal.value) : [],
    prerequisites: normal.ok ? prerequisitesOf(world, normal.value) : [],
    stackOutputs: normal.ok ? await stackOutputsOf(world, normal.value, reads) : [],
    configInputs: configInputs.values,
    missing: [],
    outputs: await outputsOf({ stack, updates }, reads),
    ...(moment.conflictSince !== undefined && { conflictSince: moment.conflictSince }),
  };
  return normal.ok && needsInputs(view) ? { ...view, missing: await missingInputs(normal.value, reads) } : view;
}

const noConfigInputs = { values: [], objects: [] };
const userOf = (key: Key): string => `stack/${key}`;

/** Only before something is about to run: of an idle Stack the configuration alone is read. */
function needsInputs(view: StackView): boolean {
  const { kind } = planStack(view).step;
  return kind === "applyWorkspace" || kind === "createUpdate";
}

interface Reads extends Readers {
  readonly secretObject: (name: string) => Promise<Known<Secret> | undefined>;
}

/** Each object is read once a pass. */
function readersOf(client: Client, namespace: string, signal: AbortSignal): Reads {
  const seen = new Map<string, Promise<unknown>>();
  const once = async <T>(id: string, read: () => Promise<T | undefined>): Promise<T | undefined> => {
    const known = seen.get(id) ?? orMissing(read);
    seen.set(id, known);
    return (await known) as T | undefined;
  };
  const secretObject = (name: string): Promise<Known<Secret> | undefined> =>
    once(`secret/${name}`, () => client.find(builtin.secrets, { namespace, name }, { signal }));
  return {
    secretObject,
    async secret(name) {
      const secret = await secretObject(name);
      return secret && readOf(secret, decoded(secret.data ?? {}));
    },
    async configMap(name) {
      const read = () => client.find(builtin.configMaps, { namespace, name }, { signal });
      const configMap = await once(`configMap/${name}`, read);
      return configMap && readOf(configMap, { ...decoded(configMap.binaryData ?? {}), ...configMap.data });
    },
  };
}

const readOf = (object: Pick<KubeObject, "metadata">, data: Read["data"]): Read => ({
  uid: object.metadata.uid ?? "",
  version: versionOf(object),
  data,
});

async function orMissing<T>(read: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isForbidden(error) || isNotFound(error)) return undefined;
    throw error;
  }
}

function decoded(data: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
}

function updatesOf({ updates }: StackWorld, stack: Stack): UpdateView[] {
  const owned = updates.byIndex(updateOwnerIndex, stack.metadata.uid ?? "");
  return owned.map(updateView).toSorted((a, b) => a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1));
}

function workspaceView({ workspaces }: StackWorld, stack: Stack): WorkspaceView {
  const { name = "", namespace = "" } = stack.metadata;
  const object = workspaces.get(refKey({ namespace, name: workspaceNameOf(name) }));
  if (!object) return { kind: "absent" };
  const ownership = judgeOwnership({ ...object, kind: workspaceResource.kind }, asOwner(stackResource, stack));
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
    default:
      return assertNever(ownership);
  }
}

type WorkspaceState = Extract<WorkspaceView, { kind: "present" }>["state"];

function workspaceState({ metadata, status }: Workspace): WorkspaceState {
  if (status?.observedGeneration !== metadata.generation) {
    return { kind: "preparing", message: "its spec has not been seen yet." };
  }
  const condition = (type: string) => status?.conditions?.find((each) => each.type === type);
  const [ready, stalled] = [condition("Ready"), condition("Stalled")];
  if (ready?.status === "True") return { kind: "ready", ...(status?.warning && { warning: status.warning }) };
  if (stalled?.status === "True") return { kind: "failed", reason: stalled.reason, message: stalled.message };
  return { kind: "preparing", message: ready?.message || "it is not ready yet." };
}

interface SourceContext {
  readonly key: Key;
  readonly stack: Stack;
  readonly spec: NormalStack | undefined;
  readonly reads: Reads;
}

async function sourceOf(world: StackWorld, { key, stack, spec, reads }: SourceContext): Promise<SourceView> {
  if (!spec) return { kind: "pending", what: "a spec that can be carried out" };
  return await observeSource(world, { key, stack, spec, readSecret: async (name) => (await reads.secret(name))?.data });
}

function cycleOf({ stacks }: StackWorld, stack: Stack, spec: NormalStack): string[] {
  const { name, namespace } = spec;
  const dependencies = (other: string): string[] => {
    const found = other === name ? stack : stacks.get(refKey({ namespace, name: other }));
    return found ? dependenciesOf(found) : [];
  };
  return cycleFrom(name, dependencies);
}

function prerequisitesOf({ stacks }: StackWorld, spec: NormalStack): StackView["prerequisites"] {
  return spec.prerequisites.map(({ stack, succeededWithinMs }) => {
    const other = stacks.get(refKey({ namespace: spec.namespace, name: stack }));
    return prerequisiteView(stack, other, succeededWithinMs);
  });
}

async function stackOutputsOf(world: StackWorld, spec: NormalStack, reads: Reads): Promise<StackOutputView[]> {
  return await Promise.all(outputRefsOf(spec).map((ref) => stackOutputOf(world, { ref, spec }, reads)));
}

async function stackOutputOf(
  { stacks }: StackWorld,
  { ref, spec }: { readonly ref: OutputRef; readonly spec: NormalStack },
  reads: Reads,
): Promise<StackOutputView> {
  const other = stacks.get(refKey({ namespace: spec.namespace, name: ref.stack }));
  const from = prerequisiteView(ref.stack, other);
  const found = from.state === "present" ? await reads.secretObject(stackOutputsSecretOf(ref.stack)) : undefined;
  const secret = other && found && isOutputsSecretOf(other, found) ? found : undefined;
  const key = outputKeyOf(ref.output);
  const version = secret?.data?.[key] === undefined ? undefined : (versionsOf(secret)[key] ?? "unknown");
  const others = secret && Object.keys(secret.data ?? {});
  return {
    ...ref,
    from,
    ...(version !== undefined && { version }),
    ...(others && { others }),
    ...(found && !secret && { isForeign: true }),
  };
}

const isOutputsSecretOf = (stack: Stack, secret: Known<Secret>): boolean =>
  judgeOwnership(secret, asOwner(stackResource, stack)).kind === "ours";

/** Read only when an end is to be noted, or outputs are pending. */
async function outputsOf(known: Pick<StackView, "stack" | "updates">, reads: Reads): Promise<OutputsView> {
  const update = unnotedOf(known) ?? pendingOf(known);
  if (update?.state !== "succeeded" || update.type === "destroy") return { kind: "none" };
  const own = await reads.secretObject(stackOutputsSecretOf(known.stack.metadata.name ?? ""));
  const ours = own && isOutputsSecretOf(known.stack, own) ? own : undefined;
  const former = { data: ours?.data ?? {}, versions: versionsOf(ours) };
  if (update.outputs === undefined) return { kind: "read", values: [], former };
  const secret = await reads.secretObject(update.outputs);
  if (!secret) return { kind: "lost", message: `Secret ${update.outputs} with its outputs does not exist.` };
  const occupant = occupantOf(update, secret);
  return occupant
    ? { kind: "lost", message: foreignText([occupant], { kind: updateResource.kind, name: update.name }), occupant }
    : { kind: "read", values: outputValues(secret), former };
}

/** The Update whose outputs could not be written when its end was noted. */
function pendingOf({ stack, updates }: Pick<StackView, "stack" | "updates">): UpdateView | undefined {
  const { name, outputsPending } = stack.status?.lastUpdate ?? {};
  return outputsPending ? updates.find((update) => update.name === name) : undefined;
}

/** Anybody may create a Secret of that name: only the Update's own tells what its outputs are. */
function occupantOf({ name, uid }: UpdateView, secret: Known<Secret>): Occupant | undefined {
  const owner = asOwner(updateResource, { metadata: { name, uid } });
  const ownership = judgeOwnership({ ...secret, kind: builtin.secrets.kind }, owner);
  // The Go operator's Secret has the Update as its owner, but not as its controller.
  return ownership.kind === "former" || ownership.kind === "foreign" ? ownership.occupant : undefined;
}
