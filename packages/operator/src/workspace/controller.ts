/** The Workspace controller: what it watches, and the parts of its reconciler. */
import {
  fieldManagers,
  isComplete,
  workspaceKind,
  type Program,
  type Update,
  type Workspace,
  type WorkspaceStatus,
} from "@pko/api";
import {
  controller,
  keyOf,
  parseKey,
  reconciler,
  watching,
  type Change,
  type Client,
  type Clock,
  type Controller,
  type EventRecorder,
  type Key,
  type ApiObject,
  type Logger,
  type Reconcile,
  type Reflector,
  type Registry,
} from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import type { OperatorCa, Preparations, Runs } from "../agents/agents.ts";
import type { ReferencePoller } from "../inputs/reference-poller.ts";
import { workspaces } from "../kinds.ts";
import type { Clearances } from "../shared/channels/clearances.ts";
import { type Slots, unlimitedSlots } from "../shared/channels/slots.ts";
import { workspaceLogKeys } from "../shared/log-keys.ts";
import { progressMs } from "../shared/pauses.ts";
import type { UpdateTraces } from "../shared/traces/update-traces.ts";
import { classReader, type ClassReflectors, classWatches } from "../shared/workspace-classes.ts";
import { workspaceKeyOf } from "../shared/updates.ts";
import { workspaceOfPod } from "../shared/pods/workspace-pod.ts";
import type { GitHubAppTokens } from "../sources/github-app.ts";
import { exposeWorkspaces } from "../workspace-metrics.ts";
import { workspaceEvents } from "./events.ts";
import { remember, retryImmediately, type WorkspaceMemory } from "./memory.ts";
import { observeWorkspace, type WorkspaceStores, type WorkspaceWorld } from "./observe/index.ts";
import { hasNoShell, whyNotStarted } from "./observe/pod.ts";
import { preemptionReader } from "./preemptions.ts";
import type { Outcome } from "./outcome.ts";
import { performWorkspace, quietSteps } from "./perform/index.ts";
import type { Performer } from "./perform/owned.ts";
import { clearedUpdates } from "./rules/clearance.ts";
import { planWorkspace } from "./rules/index.ts";
import { slotUse } from "./rules/slot.ts";
import type { WorkspaceSettings } from "./settings.ts";
import { withoutProgress, workspaceStatus } from "./status.ts";
import type { Step } from "./steps.ts";
import { isIdle, type WorkspaceView } from "./view.ts";

interface WorkspaceControllerOptions {
  /** Must be fenced: it writes nothing unless this process leads. */
  readonly client: Client;
  readonly reflectors: {
    readonly workspaces: Reflector<Workspace>;
    /** With `updateIndexers`. */
    readonly updates: Reflector<Update>;
    /** Of the label `auto.pulumi.com/component=workspace`, with `statefulSetIndexers`. */
    readonly statefulSets: Reflector<ApiObject<StatefulSet>>;
    /** Of the same label, with `podIndexers`. */
    readonly pods: Reflector<ApiObject<Pod>>;
    readonly programs: Reflector<Program>;
  };
  /** Absent where the operator may not read classes. */
  readonly workspaceClasses?: ClassReflectors | undefined;
  readonly ca: Pick<OperatorCa, "assess" | "workspaceCertificate">;
  readonly preparations: Preparations;
  readonly runs: Pick<Runs, "find">;
  readonly githubApps?: GitHubAppTokens;
  /** Unlimited if absent. */
  readonly slots?: Slots;
  /** Receives the Updates that may start. */
  readonly clearances?: Pick<Clearances, "set" | "clear">;
  readonly events: EventRecorder;
  readonly settings: WorkspaceSettings;
  /** Without it, a changed Secret is noticed at the next reconcile. */
  readonly references?: ReferencePoller;
  /** Absent if traces are off. */
  readonly traces?: UpdateTraces | undefined;
  readonly concurrency?: number;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export function workspaceController(options: WorkspaceControllerOptions): Controller {
  const { reflectors, log, metrics, clock, concurrency } = options;
  const self: Controller = controller<Workspace>({
    name: "workspace-controller",
    reflector: reflectors.workspaces,
    owns: [{ reflector: reflectors.statefulSets, ownerKind: workspaceKind }],
    watches: [
      watching({ reflector: reflectors.pods, map: podKeys }),
      watching({ reflector: reflectors.updates, map: updateKeys }),
      watching({ reflector: reflectors.programs, map: (change) => programKeys(change, reflectors.workspaces) }),
      ...classWatches(options.workspaceClasses, reflectors.workspaces.store),
    ],
    logKeys: workspaceLogKeys,
    reconcile: workspaceReconciler(options, (key) => self.enqueue(key)),
    // Another process may lead from now on: what was read in this term may be outdated in the next.
    whileRunning: () => () => options.clearances?.clear(),
    ...(concurrency !== undefined && { concurrency }),
    ...(log && { log }),
    ...(metrics && { metrics }),
    ...(clock && { clock }),
  });
  return self;
}

function podKeys({ before, after }: Change<ApiObject<Pod>>): Key[] {
  const pod = after ?? before;
  const key = pod && workspaceOfPod(pod);
  return key === undefined ? [] : [key];
}

/** The progress of an Update does not matter here: only its creation, its start in the pod, its end and its deletion. */
function updateKeys({ before, after }: Change<Update>): Key[] {
  const update = after ?? before;
  if (!update || (before && after && updateState(before) === updateState(after))) return [];
  return [workspaceKeyOf(update)];
}

const updateState = (update: Update): string => `${isComplete(update)} ${update.status?.podUid ?? ""}`;

function programKeys({ before, after }: Change<Program>, { store }: Reflector<Workspace>): Key[] {
  const { name, namespace } = (after ?? before)?.metadata ?? {};
  return store
    .list()
    .filter(({ metadata, spec }) => metadata.namespace === namespace && spec?.program?.name === name)
    .map(keyOf);
}

function workspaceReconciler(options: WorkspaceControllerOptions, enqueue: (key: Key) => void): Reconcile {
  const { client, reflectors, ca, preparations, githubApps, events, clearances, references, settings, traces } =
    options;
  const memory = new Map<Key, WorkspaceMemory>();
  if (options.metrics) exposeStates(options.metrics, reflectors);
  const world = worldOf(options, memory);
  const performer: Performer = {
    client,
    ca,
    preparations,
    settings,
    updates: reflectors.updates.store,
    programs: reflectors.programs.store,
    slots: world.slots,
    hasNoShell: (namespace, image) => hasNoShell(world, namespace, image),
    enqueue,
    ...(githubApps && { githubApps }),
  };
  return reconciler<Workspace, WorkspaceView, Step, Outcome, WorkspaceMemory>({
    resource: workspaces,
    client,
    events,
    fieldManager: fieldManagers.workspaceStatus,
    memory,
    quietSteps,
    observe: (key, moment) => observeWorkspace(world, key, moment),
    objectIn: ({ workspace }) => workspace,
    plan: planWorkspace,
    perform: (step, context) => performWorkspace(performer, step, context),
    status: (view, { outcome }): WorkspaceStatus => workspaceStatus(view, outcome),
    progress: { without: withoutProgress, everyMs: progressMs.start },
    eventsOf: (view, { outcome }) => workspaceEvents(view, outcome),
    remember,
    publish(key, { view, plan, reconcileID }) {
      const loud = plan.steps.flatMap(({ kind }) => (quietSteps.has(kind) ? [] : [kind]));
      traces?.workspacePassed(key, { kind: "Workspace", reconcileID, startMs: view.now, steps: loud });
      if (references) followInputs(references, { key, view, memory, enqueue });
      clearances?.set(key, clearedUpdates(view, plan));
      const use = slotUse(view, plan);
      if (use === "givenUp") world.slots.giveUp(key);
      if (use === "ended") world.slots.withdraw(key, "workspace");
    },
    cleanUp(key) {
      references?.forget(referenceUser(key));
      const { namespace = "", name } = parseKey(key);
      preparations.forget({ namespace, name });
      clearances?.set(key, []);
      // The Stack may hold the slot to create the Workspace again. Its Updates withdraw their own claims.
      world.slots.withdraw(key, "workspace");
    },
  });
}

function exposeStates(
  metrics: Registry,
  { workspaces: own, statefulSets, pods }: WorkspaceControllerOptions["reflectors"],
): void {
  exposeWorkspaces(metrics, {
    workspaces: own.store,
    statefulSets: statefulSets.store,
    pods: pods.store,
    hasNotStarted: (statefulSet) => whyNotStarted(statefulSet) !== undefined,
  });
}

function worldOf(options: WorkspaceControllerOptions, memory: WorkspaceWorld["memory"]): WorkspaceWorld {
  const { preparations, runs, settings, slots = unlimitedSlots } = options;
  const { workspaces, updates, statefulSets, pods } = options.reflectors;
  const stores: WorkspaceStores = {
    workspaces: workspaces.store,
    classOf: classReader(options.workspaceClasses),
    updates: updates.store,
    statefulSets: statefulSets.store,
    pods: pods.store,
    preparations,
    runs,
    slots,
    settings,
    memory,
  };
  return { ...stores, preemptions: preemptionReader(stores) };
}

interface Follower {
  readonly key: Key;
  readonly view: WorkspaceView;
  readonly memory: Map<Key, WorkspaceMemory>;
  readonly enqueue: (key: Key) => void;
}

const referenceUser = (key: Key): string => `workspace/${key}`;

/** An idle workspace does not need to know of a changed Secret: when it wakes, it reads them all. */
function followInputs(references: ReferencePoller, { key, view, memory, enqueue }: Follower): void {
  if (view.inputs) {
    const wake = (): void => {
      retryImmediately(memory, key);
      enqueue(key);
    };
    references.follow(referenceUser(key), { objects: view.inputs.read, wake });
  } else if (isIdle(view)) references.forget(referenceUser(key));
}
