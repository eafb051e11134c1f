/** Reads everything that the rules for a Workspace need. Secrets are read by name, and only when needed. */
import { normalizeWorkspace, type Update, type Workspace } from "@pko/api";
import { builtin, keyOf, type Key, type ApiObject, type Moment, type Store } from "@pko/kube";
import type { CertificateState } from "@pko/rpc/pki";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import type { OperatorCa, Preparations, Runs } from "../../agents/agents.ts";
import { defaultLostNodeMs } from "../../shared/lost-node.ts";
import { preempt, wantsRoom, type Candidate } from "../idle/preemption.ts";
import { retryOf, type WorkspaceMemory } from "../memory.ts";
import { certificateNameOf } from "../names.ts";
import { readInputs, type InputWorld } from "./inputs.ts";
import { findPod, observePod, observeStatefulSet } from "./pod.ts";
import { observeUpdates } from "./updates.ts";
import { certificateIn } from "../pod/build-objects.ts";
import { isUnschedulable } from "../pod/explain-pod.ts";
import { isBackedOff, isIdle, runningUpdate, type WorkspaceView } from "../view.ts";

export interface WorkspaceWorld extends InputWorld {
  readonly workspaces: Store<Workspace>;
  /** With `updateIndexers`. */
  readonly updates: Store<Update>;
  readonly statefulSets: Store<ApiObject<StatefulSet>>;
  /** With `podIndexers`. */
  readonly pods: Store<ApiObject<Pod>>;
  readonly ca: Pick<OperatorCa, "assess">;
  readonly preparations: Pick<Preparations, "hasResponded">;
  readonly runs: Pick<Runs, "find">;
  /** Of all Workspaces. */
  readonly memory: ReadonlyMap<Key, WorkspaceMemory>;
}

const unschedulableIndex = "workspace/unschedulable";

export const podIndexers = {
  [unschedulableIndex]: (pod: ApiObject<Pod>): string[] => (isUnschedulable(pod) ? ["yes"] : []),
};

/** Undefined for a Workspace that does not exist. */
export async function observeWorkspace(
  world: WorkspaceWorld,
  key: Key,
  moment: Moment<WorkspaceMemory>,
): Promise<WorkspaceView | undefined> {
  const workspace = world.workspaces.get(key);
  if (!workspace) return undefined;
  const view = observeStores(world, workspace, moment);
  const { signal } = moment;
  const certificate = needsCertificate(view) && (await readCertificate(world, view, signal));
  const inputs =
    view.spec.ok && needsInputs(view) && (await readInputs(world, { view, normal: view.spec.value, signal }));
  return { ...view, ...(certificate && { certificate }), ...(inputs && { inputs }) };
}

function observeStores(world: WorkspaceWorld, workspace: Workspace, moment: Moment<WorkspaceMemory>): WorkspaceView {
  const spec = normalizeWorkspace(workspace);
  const statefulSet = observeStatefulSet(world, workspace);
  const pod = findPod(world, workspace);
  const retry = retryOf(workspace, moment);
  const { written, conflictSince } = moment.memory ?? {};
  return {
    now: moment.now,
    workspace,
    spec,
    ...(statefulSet && { statefulSet }),
    ...(pod && { pod: observePod(world, workspace, pod) }),
    updates: observeUpdates(world, workspace, pod),
    idleTimeoutMs: (spec.ok ? spec.value.idleTimeoutMs : undefined) ?? world.settings.idleTimeoutMs,
    lostNodeAfterMs: world.settings.lostNodeAfterMs ?? defaultLostNodeMs,
    preempted: preempted(world, moment.now),
    ...(retry && { retry }),
    ...(written && { written }),
    ...(conflictSince !== undefined && { conflictSince }),
  };
}

/** A living pod needs a trusted certificate, above all while an Update runs in it: the result is fetched with it. */
function needsCertificate(view: WorkspaceView): boolean {
  if (view.workspace.metadata.deletionTimestamp) return false;
  return view.pod !== undefined || (view.spec.ok && needsInputs(view));
}

async function readCertificate(
  { client, ca }: WorkspaceWorld,
  { workspace }: WorkspaceView,
  signal: AbortSignal,
): Promise<CertificateState> {
  const { name = "", namespace = "" } = workspace.metadata;
  const secret = await client.find(builtin.secrets, { namespace, name: certificateNameOf(name) }, { signal });
  return await ca.assess(secret && certificateIn(secret));
}

/** No rule needs them while the workspace is scaled to zero, or while an Update runs and every change has to wait. */
function needsInputs(view: WorkspaceView): boolean {
  const isScaledToZero = isIdle(view) || isBackedOff(view);
  const run = runningUpdate(view);
  const isRunning = run !== undefined && !run.isUnprepared && view.pod?.isUp;
  return !view.workspace.metadata.deletionTimestamp && !isScaledToZero && !isRunning;
}

/** Computed only while pods are unschedulable. */
function preempted(world: WorkspaceWorld, now: number): Key[] {
  const waiting = world.pods.byIndex(unschedulableIndex, "yes").filter((pod) => wantsRoom(pod, now));
  if (waiting.length === 0) return [];
  // Terminating pods make room already.
  const terminating = world.pods.list().filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  const candidates = world.workspaces.list().flatMap((workspace) => candidateFor(world, workspace) ?? []);
  return preempt(waiting.length - terminating.length, candidates, now);
}

function candidateFor(world: WorkspaceWorld, workspace: Workspace): Candidate | undefined {
  const pod = findPod(world, workspace);
  if (!pod) return undefined;
  const { idleTimeoutSeconds } = workspace.spec ?? {};
  return {
    workspace,
    pod,
    updates: observeUpdates(world, workspace, pod),
    idleTimeoutMs: idleTimeoutSeconds === undefined ? world.settings.idleTimeoutMs : idleTimeoutSeconds * 1000,
    losesState: world.memory.get(keyOf(workspace))?.losesState === true,
  };
}
