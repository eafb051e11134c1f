/** The Stack controller: who wakes a Stack, and the one way from a look to what is written. */
import { isDeepStrictEqual } from "node:util";

import {
  stackEvents,
  stackFinalizer,
  stackKind,
  type Program,
  type Stack,
  type StackEvent,
  type Update,
  type Workspace,
} from "@pko/api";
import {
  requeueAfter,
  requeueAt,
  requeueSoon,
  controller,
  done,
  metricsRegistry,
  parseKey,
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
  type ReconcileContext,
  type Reflector,
  type Registry,
  type Result,
} from "@pko/kube";
import { assertNever } from "@pko/rpc";

import { stacks } from "../kinds.ts";
import { referenceWatch, type ReferenceWatch } from "../inputs/reference-watch.ts";
import { ConflictTimes, ownershipConflict } from "../ownership.ts";
import { fluxSources } from "../sources/flux-sources.ts";
import { gitPoller } from "../sources/git-poller.ts";
import { gitLister, type GitSettings, type ListRefs } from "../sources/git-remote.ts";
import { concludeBlocked } from "./blocked.ts";
import { eventsOf } from "./events.ts";
import { dependsOnIndex, programIndex, stackKeysOf, updateStackIndex } from "./indexes.ts";
import { stackMetrics, type StackMetrics } from "./metrics.ts";
import { observeStack, type StackWorld } from "./observe.ts";
import { performStack, release, writeStatus, type Performed } from "./perform.ts";
import { planStack, type Plan } from "./plan.ts";
import { statusOf } from "./status.ts";
import { updateView } from "./update-view.ts";
import type { StackView } from "./view.ts";

export interface StackControllerOptions {
  /** A fenced one. */
  readonly client: Client;
  readonly reflectors: {
    /** With `stackIndexers`. */
    readonly stacks: Reflector<Stack>;
    readonly workspaces: Reflector<Workspace>;
    /** With `ownedUpdateIndexers`. */
    readonly updates: Reflector<Update>;
    readonly programs: Reflector<Program>;
  };
  readonly events: EventRecorder;
  readonly git: GitSettings;
  /** For tests: instead of `git ls-remote`. */
  readonly listRefs?: ListRefs;
  /** Whoever gives it also stops it; one of its own when absent. */
  readonly references?: ReferenceWatch;
  /** Those that are served; all when absent. */
  readonly namespaces?: readonly string[];
  readonly concurrency?: number;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export function stackController(options: StackControllerOptions): Controller {
  const { client, reflectors, events, namespaces, concurrency } = options;
  const { log = silentLogger, metrics = metricsRegistry(), clock = systemClock } = options;
  const wake = (key: Key): void => inner.enqueue(key);
  const git = gitPoller({ list: options.listRefs ?? gitLister(options.git), wake, clock, log });
  const flux = fluxSources({ client, wake, clock, log, ...(namespaces && { namespaces }) });
  const references = options.references ?? referenceWatch({ client, clock, log });
  const world: StackWorld = {
    client,
    git,
    flux,
    stacks: reflectors.stacks.store,
    workspaces: reflectors.workspaces.store,
    updates: reflectors.updates.store,
    programs: reflectors.programs.store,
    references,
    wake,
  };
  const reconciler = new Reconciler(world, { events, metrics: stackMetrics(metrics, world.stacks) });
  const inner = controller({
    name: "stack-controller",
    reflector: reflectors.stacks,
    owns: [{ reflector: reflectors.workspaces, ownerKind: stackKind }],
    watches: [
      // A Workspace has its Stack's name. One of somebody else names no Stack as its owner, and may be in a Stack's way.
      watching({
        reflector: reflectors.workspaces,
        map: ({ key }) => (world.stacks.get(key) ? [key] : []),
      }),
      watching({
        reflector: reflectors.updates,
        map: ({ before, after }) => new Set([before, after].flatMap((update) => (update ? stackKeysOf(update) : []))),
      }),
      // Those that wait for a Stack, and those that use its outputs.
      watching({
        reflector: reflectors.stacks,
        map: ({ key }) => world.stacks.byIndex(dependsOnIndex, key).map(keyOfStack),
      }),
      watching({
        reflector: reflectors.programs,
        map: ({ key }) => world.stacks.byIndex(programIndex, key).map(keyOfStack),
      }),
    ],
    reconcile: (key, context) => reconciler.reconcile(key, context),
    log,
    metrics,
    clock,
    ...(concurrency !== undefined && { concurrency }),
  });
  return {
    name: inner.name,
    reflectors: inner.reflectors,
    enqueue: wake,
    longestRunningMs: () => inner.longestRunningMs(),
    async run(lifetime) {
      try {
        await inner.run(lifetime);
      } finally {
        git.stop();
        flux.stop();
        if (!options.references) references.stop();
      }
    },
  };
}

const keyOfStack = ({ metadata }: Stack): Key =>
  refKey({ namespace: metadata.namespace ?? "", name: metadata.name ?? "" });

type Shown = Pick<Plan, "step" | "outcome" | "lookAt">;

/** The plan as it is after its step. */
function concluded(view: StackView, plan: Plan, performed: Exclude<Performed, { kind: "stale" }>): Shown {
  switch (performed.kind) {
    case "done":
      return plan;
    case "occupied":
      return concludeBlocked(view, plan.step, performed.occupied);
    case "later":
      return { step: { kind: "none" }, outcome: performed.outcome ?? plan.outcome };
    case "refused":
      return { step: { kind: "none" }, outcome: performed.outcome };
    default:
      return assertNever(performed);
  }
}

const isConflict = (outcome: Plan["outcome"]): boolean =>
  outcome.kind === "stalled" && outcome.reason === ownershipConflict;

/** The API server's mind may change: a webhook, a quota, a namespace. */
const refusedMs = 60_000;

interface Sinks {
  readonly events: EventRecorder;
  readonly metrics: StackMetrics;
}

class Reconciler {
  readonly #world: StackWorld;
  readonly #sinks: Sinks;
  readonly #conflicts = new ConflictTimes();

  constructor(world: StackWorld, sinks: Sinks) {
    this.#world = world;
    this.#sinks = sinks;
  }

  async reconcile(key: Key, { now, signal, log }: ReconcileContext): Promise<Result> {
    const conflictSince = this.#conflicts.since(key);
    const moment = { now, signal, ...(conflictSince !== undefined && { conflictSince }) };
    const view = await observeStack(this.#world, key, moment);
    await this.#releaseOrphans(key, view, signal);
    if (!view) {
      this.#conflicts.delete(key);
      return done;
    }
    const plan = planStack(view);
    const performer = { client: this.#world.client, updates: this.#world.updates, signal };
    const performed = await performStack(performer, view, plan);
    if (performed.kind === "stale") return requeueSoon;
    const isRefused = performed.kind === "refused";
    const shown = concluded(view, plan, performed);
    const status = statusOf(view, shown);
    if (!isDeepStrictEqual(status, view.stack.status ?? {})) {
      const written = await writeStatus(performer, view, status);
      if (written.kind === "stale") return requeueSoon;
    }
    if (performed.kind === "later") return requeueAfter(performed.afterMs);
    if (isRefused) log.info("step refused", { step: plan.step.kind });
    else if (shown.step.kind !== "none") log.info("step made", { step: shown.step.kind });
    if (shown.outcome.kind !== "keep") this.#conflicts.record(key, isConflict(shown.outcome), now);
    this.#tell(view, shown);
    if (performed.kind === "done" && performed.lost !== undefined) this.#tellLost(view, performed.lost);
    if (isRefused) return requeueAfter(refusedMs);
    return requeueAt(shown.lookAt, now);
  }

  #tell(view: StackView, { step, outcome }: Pick<Plan, "step" | "outcome">): void {
    for (const note of eventsOf(view, step, outcome)) this.#sinks.events.record(view.stack, note);
    if (step.kind === "note") this.#sinks.metrics.noted(view.stack, step.noted);
  }

  #tellLost({ stack }: StackView, message: string): void {
    const reason: StackEvent = "StackOutputRetrievalFailure";
    this.#sinks.events.record(stack, { type: stackEvents[reason], reason, message });
  }

  /**
   * Updates of a Stack that is gone, perhaps with another of its name in its place: nobody will note their end. That it is
   * gone is asked for: the end of one that was let go by mistake would never be noted, and the update made again.
   */
  async #releaseOrphans(key: Key, view: StackView | undefined, signal: AbortSignal): Promise<void> {
    const { client, updates } = this.#world;
    const { namespace = "", name } = parseKey(key);
    const held = updates
      .byIndex(updateStackIndex, key)
      .filter(({ metadata }) => metadata.finalizers?.includes(stackFinalizer));
    const notOf = (uid: string | undefined, all: readonly Update[]): Update[] =>
      all.filter(({ metadata }) => !metadata.ownerReferences?.some((owner) => owner.uid === uid));
    const orphans = notOf(view?.stack.metadata.uid, held);
    if (orphans.length === 0) return;
    const present = await client.find(stacks, { namespace, name }, { signal });
    for (const update of notOf(present?.metadata.uid, orphans)) {
      const ref = { namespace, name: update.metadata.name ?? "" };
      await release({ client, signal }, ref, updateView(update));
    }
  }
}
