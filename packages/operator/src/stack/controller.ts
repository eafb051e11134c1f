/** The Stack controller: what it watches, and what is particular to Stacks in the reconciler. */
import {
  fieldManagers,
  stackKind,
  type Approval,
  type Program,
  type Stack,
  type Update,
  type Workspace,
} from "@pko/api";
import {
  controller,
  keyOf,
  metricsRegistry,
  reconciler,
  refKey,
  silentLogger,
  systemClock,
  watching,
  type Client,
  type Clock,
  type Controller,
  type EventRecorder,
  type Key,
  type Logger,
  type Reconcile,
  type Reflector,
  type Registry,
} from "@pko/kube";

import type { PolicyProbe } from "../approvals/policy-probe.ts";
import { referencePoller, type ReferencePoller } from "../inputs/reference-poller.ts";
import { stacks } from "../kinds.ts";
import { unlimitedSlots, type Slots } from "../shared/channels/slots.ts";
import type { Pushes } from "../shared/channels/pushes.ts";
import { neverSuspended, type Suspension } from "../shared/channels/suspension.ts";
import { stackLogKeys } from "../shared/log-keys.ts";
import type { UpdateTraces } from "../shared/traces/update-traces.ts";
import { classReader, type ClassReflectors, classWatches, leastApproval } from "../shared/workspace-classes.ts";
import { progressMs } from "../shared/pauses.ts";
import { fluxSources } from "../sources/flux-sources.ts";
import { followSource, type SourcePollers } from "../sources/follow.ts";
import { gitPoller } from "../sources/git-poller.ts";
import { gitLister, inProcess } from "../sources/git-lister.ts";
import type { GitSettings, ListRefs } from "../sources/git-remote.ts";
import { pathComparisons } from "../sources/path-comparisons.ts";
import { approvalPolicyOf, planKeyOf } from "../shared/approvals.ts";
import { stackEventsFor } from "./events.ts";
import { approvalNews } from "./history/approval.ts";
import { dependsOnIndex, programIndex, stackKeysOf } from "./indexes.ts";
import { stackMetrics, type StackMetrics } from "./metrics.ts";
import { observeStack, orphanedUpdates, type StackMemory, type StackWorld } from "./observe/index.ts";
import type { Outcome } from "./outcome.ts";
import { performStack } from "./perform/index.ts";
import { removeOrphanFinalizers } from "./perform/finalizers.ts";
import type { StackPlan, Step } from "./steps.ts";
import { planStack } from "./rules/index.ts";
import { rememberedObstacle } from "./rules/recheck.ts";
import { needsSlot } from "./rules/slot.ts";
import { dependenciesOf } from "./stack-dependencies.ts";
import { stackStatus, withoutProgress } from "./status.ts";
import type { StackView } from "./view.ts";

export interface StackControllerOptions {
  /** Must be fenced. */
  readonly client: Client;
  readonly reflectors: {
    /** With `stackIndexers`. */
    readonly stacks: Reflector<Stack>;
    readonly workspaces: Reflector<Workspace>;
    /** With `ownedUpdateIndexers`. */
    readonly updates: Reflector<Update>;
    readonly programs: Reflector<Program>;
    /** With `approvalIndexers`. */
    readonly approvals: Reflector<Approval>;
  };
  /** Absent where the operator may not read classes. */
  readonly workspaceClasses?: ClassReflectors | undefined;
  readonly approvalPolicy: PolicyProbe;
  readonly events: EventRecorder;
  readonly git: GitSettings;
  /** For tests: instead of requests to a Git server. */
  readonly listRefs?: ListRefs;
  /** What webhooks report; nothing if absent. */
  readonly pushes?: Pushes;
  /** Never suspended if absent. */
  readonly suspension?: Suspension;
  /** Unlimited if absent. */
  readonly slots?: Slots;
  /** Stopped by the caller. The controller creates and stops one if absent. */
  readonly references?: ReferencePoller;
  /** Absent if traces are off. */
  readonly traces?: UpdateTraces | undefined;
  /** For tests. */
  readonly minResyncSeconds?: number;
  /** All namespaces if absent. */
  readonly namespaces?: readonly string[];
  readonly concurrency?: number;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export function stackController(options: StackControllerOptions): Controller {
  const { client, reflectors, events, namespaces, concurrency } = options;
  const { log = silentLogger, metrics = metricsRegistry(), clock = systemClock } = options;
  const wake = (key: Key): void => self.enqueue(key);
  const lister = options.listRefs ? inProcess(options.listRefs) : gitLister(options.git, clock);
  const { traces } = options;
  const onFound = traces && { onFound: traces.commitFound.bind(traces) };
  const git = gitPoller({ lister, wake, clock, log, metrics, ...onFound });
  const comparisons = pathComparisons({ comparer: lister, wake, clock, log });
  const flux = fluxSources({ client, wake, clock, log, ...(namespaces && { namespaces }) });
  const references = options.references ?? referencePoller({ client, clock, log });
  const { suspension = neverSuspended } = options;
  const world: StackWorld = {
    client,
    suspension,
    slots: options.slots ?? unlimitedSlots,
    git,
    flux,
    comparisons,
    stacks: reflectors.stacks.store,
    workspaces: reflectors.workspaces.store,
    updates: reflectors.updates.store,
    programs: reflectors.programs.store,
    approvals: reflectors.approvals.store,
    approvalPolicy: options.approvalPolicy,
    classOf: classReader(options.workspaceClasses),
    ...(options.minResyncSeconds !== undefined && { minResyncSeconds: options.minResyncSeconds }),
  };
  const self: Controller = controller({
    name: "stack-controller",
    reflector: reflectors.stacks,
    owns: [{ reflector: reflectors.workspaces, ownerKind: stackKind }],
    watches: [...watchesOf(reflectors), ...classWatches(options.workspaceClasses, reflectors.stacks.store)],
    logKeys: stackLogKeys,
    reconcile: stackReconciler(world, {
      events,
      references,
      sources: { git, flux, comparisons },
      approvalPolicy: options.approvalPolicy,
      wake,
      metrics: stackMetrics(metrics, world, traces),
      traces,
    }),
    whileRunning() {
      const unfollow = suspension.follow(() => {
        for (const stack of world.stacks.list()) wake(keyOf(stack));
      });
      const unfollowPushes = options.pushes?.follow((push) => git.pushed(push));
      return () => {
        unfollow();
        unfollowPushes?.();
        git.stop();
        flux.stop();
        comparisons.stop();
        if (!options.references) references.stop();
        options.approvalPolicy.stop();
      };
    },
    log,
    metrics,
    clock,
    ...(concurrency !== undefined && { concurrency }),
  });
  return self;
}

function watchesOf(reflectors: StackControllerOptions["reflectors"]) {
  const { store } = reflectors.stacks;
  const updates = reflectors.updates.store;
  return [
    // A Workspace of another owner may have the name that a Stack needs.
    watching({ reflector: reflectors.workspaces, map: ({ key }) => (store.get(key) ? [key] : []) }),
    watching({
      reflector: reflectors.updates,
      map: ({ before, after }) => new Set([before, after].flatMap((update) => (update ? stackKeysOf(update) : []))),
    }),
    // Stacks that depend on the changed one.
    watching({ reflector: reflectors.stacks, map: ({ key }) => store.byIndex(dependsOnIndex, key).map(keyOf) }),
    // Stacks that wait for the deletion of the changed one.
    watching({ reflector: reflectors.stacks, map: ({ before, after }) => deletedDependencies(before, after) }),
    watching({
      reflector: reflectors.approvals,
      map({ before, after }) {
        const plans = [before, after].flatMap((approval) => (approval ? (updates.get(planKeyOf(approval)) ?? []) : []));
        return new Set(plans.flatMap(stackKeysOf));
      },
    }),
    watching({ reflector: reflectors.programs, map: ({ key }) => store.byIndex(programIndex, key).map(keyOf) }),
  ];
}

function deletedDependencies(before: Stack | undefined, after: Stack | undefined): Key[] {
  const stack = after ?? before;
  if (!stack || (after && !after.metadata.deletionTimestamp)) return [];
  const { namespace = "" } = stack.metadata;
  return dependenciesOf(stack).map((name) => refKey({ namespace, name }));
}

interface Channels {
  readonly events: EventRecorder;
  readonly references: ReferencePoller;
  readonly sources: SourcePollers;
  readonly approvalPolicy: PolicyProbe;
  readonly metrics: StackMetrics;
  readonly traces: UpdateTraces | undefined;
  readonly wake: (key: Key) => void;
}

const quietSteps: ReadonlySet<Step["kind"]> = new Set<Step["kind"]>(["checkInputs", "claimSlot"]);

function stackReconciler(world: StackWorld, channels: Channels): Reconcile {
  const { events, references, sources, approvalPolicy, metrics, traces, wake } = channels;
  const { client, updates, slots } = world;
  return reconciler<Stack, StackView, Step, Outcome, StackMemory>({
    resource: stacks,
    client,
    fieldManager: fieldManagers.stackStatus,
    events,
    quietSteps,
    observe: (key, moment) => observeStack(world, key, moment),
    objectIn: ({ stack }) => stack,
    plan: planStack,
    perform: (step, context) => performStack({ client, updates, slots }, step, context),
    status: stackStatus,
    progress: { without: withoutProgress, everyMs: progressMs.start },
    eventsOf: stackEventsFor,
    remember: (view, { outcome }) => rememberedObstacle(view, outcome),
    publish(key, { view, plan, reconcileID }) {
      const loud = plan.steps.flatMap(({ kind }) => (quietSteps.has(kind) ? [] : [kind]));
      const isUpToDate = plan.outcome.kind === "upToDate";
      const pass = { kind: "Stack", reconcileID, startMs: view.now, steps: loud, isUpToDate } as const;
      traces?.stackPassed(key, pass, recordedUpdate(plan.steps));
      const { stack, configObjects } = view;
      followSource(sources, key, view.followed);
      if (!needsSlot(view, plan)) slots.withdraw(key, "stack");
      references.follow(referenceUser(key), { objects: configObjects, wake: () => wake(key) });
      followPolicy(approvalPolicy, { key, view, plan, wake });
      for (const step of plan.steps) {
        if (step.kind === "recordResult") metrics.recordResult(stack, step.result);
        if (step.kind === "recordDrift") metrics.recordDrift(step.record);
      }
      if (plan.outcome.kind !== "unchanged") metrics.recordApprovals(approvalNews(view, plan.steps));
    },
    async cleanUp(key, signal) {
      followSource(sources, key, undefined);
      slots.withdraw(key, "stack");
      references.forget(referenceUser(key));
      approvalPolicy.forget(key);
      await removeOrphanFinalizers({ client, signal }, key, orphanedUpdates(world, key, undefined));
    },
  });
}

interface PolicyUse {
  readonly key: Key;
  readonly view: StackView;
  readonly plan: StackPlan;
  readonly wake: (key: Key) => void;
}

function followPolicy(probe: PolicyProbe, { key, view, plan, wake }: PolicyUse): void {
  const { stack, workspaceClass, approvalPolicy: state } = view;
  const { name = "", namespace = "" } = stack.metadata;
  if (!approvalPolicyOf(stack, leastApproval(workspaceClass))) {
    probe.forget(key);
    return;
  }
  const { required } = approvalPolicyOf(stack) ?? {};
  probe.follow(key, { namespace, name, ...(required && { required }), wake: () => wake(key) });
  // It may wait for the check. If it waits for something else, the check costs little.
  if (state.kind === "unknown" && plan.outcome.kind === "unchanged") probe.need(namespace);
}

/** The UID of the Update whose result a pass records. */
function recordedUpdate(steps: readonly Step[]): string | undefined {
  return steps.find((step) => step.kind === "recordResult")?.result.update.uid;
}

const referenceUser = (key: Key): string => `stack/${key}`;
