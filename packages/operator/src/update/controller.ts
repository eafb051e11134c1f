/** The Update controller's watches and wiring. */
import { stackEvents, type StackEvent, type Update, type Workspace } from "@pko/api";
import {
  requeueAfter,
  requeueAt,
  requeueSoon,
  controller,
  done,
  keyOf,
  watching,
  type Client,
  type Clock,
  type Controller,
  type EventNote,
  type EventRecorder,
  type Key,
  type Known,
  type Logger,
  type ReconcileContext,
  type Reflector,
  type Registry,
  type Result,
} from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import type { Projects, Runs } from "../agents/agents.ts";
import { isComplete } from "./conditions.ts";
import {
  observeUpdate,
  uidIndex,
  workspaceIndex,
  workspaceKeyOf,
  workspaceOfPod,
  type UpdateWorld,
} from "./observe.ts";
import { performUpdate } from "./perform.ts";
import { planUpdate } from "./plan.ts";

interface UpdateControllerOptions {
  /** Fenced: writes nothing unless this process leads. */
  readonly client: Client;
  readonly runs: Runs;
  readonly events: EventRecorder;
  /** With `updateIndexers`. */
  readonly updates: Reflector<Update>;
  readonly workspaces: Reflector<Workspace>;
  /** Those of workspaces. */
  readonly pods: Reflector<Known<Pod>>;
  readonly projects: Projects;
  /** Without it every Update may begin as soon as its Workspace is ready. */
  readonly clearances?: UpdateWorld["clearances"];
  readonly lostNodeAfterMs?: UpdateWorld["lostNodeAfterMs"];
  readonly concurrency?: number;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export interface UpdateController extends Controller {
  /** For `runs`: the state of this run has changed. */
  wakeRun(runId: string): void;
}

export function updateController(options: UpdateControllerOptions): UpdateController {
  const { updates, workspaces, pods, runs, projects, clearances, concurrency, log, metrics, clock } = options;
  const world: UpdateWorld = {
    updates: updates.store,
    workspaces: workspaces.store,
    pods: pods.store,
    runs,
    projects,
    ...(clearances && { clearances }),
    ...(options.lostNodeAfterMs !== undefined && { lostNodeAfterMs: options.lostNodeAfterMs }),
  };
  const reconciler = new Reconciler(world, options);
  const inWorkspace = (key: Key | undefined): Key[] =>
    key === undefined
      ? []
      : updates.store
          .byIndex(workspaceIndex, key)
          .filter((update) => !isComplete(update))
          .map(keyOf);
  const inner = controller<Update>({
    name: "update-controller",
    reflector: updates,
    watches: [
      watching({ reflector: workspaces, map: ({ key }) => inWorkspace(key) }),
      watching({ reflector: pods, map: ({ before, after }) => inWorkspace(podWorkspace(after ?? before)) }),
      // Whoever waits for this one in the same workspace.
      watching({ reflector: updates, map: ({ before, after }) => inWorkspace(endedIn(after, before)) }),
    ],
    reconcile: (key, context) => reconciler.reconcile(key, context),
    ...(concurrency !== undefined && { concurrency }),
    ...(log && { log }),
    ...(metrics && { metrics }),
    ...(clock && { clock }),
  });
  return {
    name: inner.name,
    reflectors: inner.reflectors,
    run: async (lifetime) => {
      const unsubscribe = updates.store.subscribe(({ before, after }) => {
        const uid = before?.metadata.uid;
        // Removed by force, with its run: nobody asks for it any more.
        if (uid !== undefined && after?.metadata.uid !== uid) runs.forget(uid);
      });
      try {
        await inner.run(lifetime);
      } finally {
        unsubscribe();
      }
    },
    enqueue: (key) => inner.enqueue(key),
    longestRunningMs: () => inner.longestRunningMs(),
    wakeRun: (runId) => {
      for (const update of updates.store.byIndex(uidIndex, runId)) inner.enqueue(keyOf(update));
    },
  };
}

function podWorkspace(pod: Known<Pod> | undefined): Key | undefined {
  return pod && workspaceOfPod(pod);
}

/** The workspace in which an Update has just ended or gone, so that the next may begin. */
function endedIn(after: Update | undefined, before: Update | undefined): Key | undefined {
  if (!before || isComplete(before)) return undefined;
  return !after || isComplete(after) ? workspaceKeyOf(before) : undefined;
}

type Tools = Pick<UpdateControllerOptions, "client" | "runs" | "events">;

class Reconciler {
  readonly #world: UpdateWorld;
  readonly #tools: Tools;

  constructor(world: UpdateWorld, tools: Tools) {
    this.#world = world;
    this.#tools = tools;
  }

  async reconcile(key: Key, { now, signal, log }: ReconcileContext): Promise<Result> {
    const view = observeUpdate(this.#world, key, { now });
    if (!view) return done;
    const plan = planUpdate(view);
    const { client, runs, events } = this.#tools;
    const performed = await performUpdate({ client, runs, signal }, view, plan);
    if (performed.kind === "stale") return requeueSoon;
    if (performed.kind === "unproven") return requeueAfter(unprovenMs);
    if (performed.kind === "gone") return done;
    const { step } = plan;
    if (step.kind !== "none") log.debug("step made", { step: step.kind });
    // After its status: whoever hears of the end finds it there.
    if ("event" in step && step.event) events.record(view.update, step.event);
    if (step.kind === "end")
      log.info("update ended", { reason: step.ending.reason, operation: view.update.spec?.type });
    const { lost = [] } = performed;
    if (lost.length > 0) events.record(view.update, lostNote(lost));
    return requeueAt(plan.lookAt, now);
  }
}

/** As long as a store is behind. */
const unprovenMs = 1000;

function lostNote(lost: readonly string[]): EventNote & { readonly reason: StackEvent } {
  const reason: StackEvent = "StackOutputRetrievalFailure";
  return { type: stackEvents[reason], reason, message: lost.join("\n") };
}
