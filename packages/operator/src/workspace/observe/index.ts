/** Reads what the caches have about a Workspace. What has to be read by name is read by a step, when a rule needs it. */
import { normalizeWorkspace, type Update, type Workspace } from "@pko/api";
import { type Key, type ApiObject, type Moment, type Store } from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import type { Preparations, Runs } from "../../agents/agents.ts";
import { defaultLostNodeMs } from "../../shared/pods/lost-node.ts";
import type { ClassReader } from "../../shared/workspace-classes.ts";
import { retryOf, type WorkspaceMemory } from "../memory.ts";
import { findPod, observePod, observeStatefulSet } from "./pod.ts";
import { observeUnschedulable } from "./room.ts";
import { observeUpdates } from "./updates.ts";
import type { WorkspaceSettings } from "../settings.ts";
import type { WorkspaceView } from "../view.ts";

export interface WorkspaceWorld {
  readonly settings: WorkspaceSettings;
  readonly workspaces: Store<Workspace>;
  readonly classOf: ClassReader;
  /** With `updateIndexers`. */
  readonly updates: Store<Update>;
  readonly statefulSets: Store<ApiObject<StatefulSet>>;
  /** With `podIndexers`. */
  readonly pods: Store<ApiObject<Pod>>;
  readonly preparations: Pick<Preparations, "hasResponded">;
  readonly runs: Pick<Runs, "find">;
  /** Of all Workspaces. */
  readonly memory: ReadonlyMap<Key, WorkspaceMemory>;
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
  return {
    now: moment.now,
    workspace,
    spec,
    workspaceClass: world.classOf(workspace.metadata.namespace ?? ""),
    ...(statefulSet && { statefulSet }),
    ...(pod && { pod: observePod(world, workspace, pod) }),
    updates: observeUpdates(world, workspace, pod),
    idleTimeoutMs: (spec.ok ? spec.value.idleTimeoutMs : undefined) ?? world.settings.idleTimeoutMs,
    lostNodeAfterMs: world.settings.lostNodeAfterMs ?? defaultLostNodeMs,
    unschedulable: observeUnschedulable(world),
    ...(retry && { retry }),
    ...(written && { written }),
    ...(conflictSince !== undefined && { conflictSince }),
  };
}
