/** Reads what the caches have about a Workspace. What has to be read by name is read by a step, when a rule needs it. */
import { normalizeWorkspace, type Update, type Workspace } from "@pko/api";
import { type Key, type ApiObject, type Moment, type Store } from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import type { Preparations, Runs } from "../../agents/agents.ts";
import type { Slots } from "../../shared/channels/slots.ts";
import { defaultLostNodeMs } from "../../shared/pods/lost-node.ts";
import { knownCertificate, retryOf, type WorkspaceMemory } from "../memory.ts";
import type { ClassReader } from "../../shared/workspace-classes.ts";
import { findPod, observePod, observeStatefulSet } from "./pod.ts";
import type { PreemptionReader } from "../preemptions.ts";
import { observeUpdates } from "./updates.ts";
import type { WorkspaceSettings } from "../settings.ts";
import type { WorkspaceView } from "../view.ts";

export interface WorkspaceStores {
  readonly settings: WorkspaceSettings;
  readonly workspaces: Store<Workspace>;
  readonly classOf: ClassReader;
  /** With `updateIndexers`. */
  readonly updates: Store<Update>;
  /** With `statefulSetIndexers`. */
  readonly statefulSets: Store<ApiObject<StatefulSet>>;
  /** With `podIndexers`. */
  readonly pods: Store<ApiObject<Pod>>;
  readonly preparations: Pick<Preparations, "hasResponded" | "preparationOf">;
  readonly runs: Pick<Runs, "find">;
  readonly slots: Slots;
  /** Of all Workspaces. */
  readonly memory: ReadonlyMap<Key, WorkspaceMemory>;
}

export interface WorkspaceWorld extends WorkspaceStores {
  readonly preemptions: PreemptionReader;
}

/** Undefined for a Workspace that does not exist. */
export function observeWorkspace(
  world: WorkspaceWorld,
  key: Key,
  moment: Moment<WorkspaceMemory>,
): WorkspaceView | undefined {
  const workspace = world.workspaces.get(key);
  if (!workspace) return undefined;
  const spec = normalizeWorkspace(workspace);
  const statefulSet = observeStatefulSet(world, workspace);
  const pod = findPod(world, workspace);
  const retry = retryOf(workspace, moment);
  const { written, conflictSince } = moment.memory ?? {};
  const podFacts = pod && observePod(world, workspace, pod);
  const isKnownPrepared = podFacts && world.preparations.preparationOf(podFacts.agent) !== undefined;
  const certificate = knownCertificate(moment, world.settings.certificateMs);
  return {
    now: moment.now,
    workspace,
    spec,
    workspaceClass: world.classOf(workspace.metadata.namespace ?? ""),
    ...(statefulSet && { statefulSet }),
    ...(podFacts && { pod: podFacts }),
    ...(isKnownPrepared && { isKnownPrepared }),
    ...(certificate && { knownCertificate: certificate }),
    updates: observeUpdates(world, workspace, pod),
    idleTimeoutMs: (spec.ok ? spec.value.idleTimeoutMs : undefined) ?? world.settings.idleTimeoutMs,
    lostNodeAfterMs: world.settings.lostNodeAfterMs ?? defaultLostNodeMs,
    preemptions: world.preemptions(moment),
    slot: world.slots.state(key),
    ...(retry && { retry }),
    ...(written && { written }),
    ...(conflictSince !== undefined && { conflictSince }),
  };
}
