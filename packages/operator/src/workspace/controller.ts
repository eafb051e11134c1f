/** The Workspace controller: what it watches, and the passes it makes. */
import { statefulSetNameOf, workspaceKind, type Program, type Update, type Workspace } from "@pko/api";
import {
  requeueAfter,
  requeueAt,
  controller,
  done,
  keyOf,
  parseKey,
  refKey,
  watching,
  type Change,
  type Client,
  type Controller,
  type EventRecorder,
  type Key,
  type Known,
  type Logger,
  type ReconcileContext,
  type Reflector,
  type Registry,
  type Result,
} from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import type { Authority, Preparations, Runs } from "../agents/agents.ts";
import type { ReferenceWatch } from "../inputs/reference-watch.ts";
import { ConflictTimes } from "../ownership.ts";
import { isComplete } from "../update/conditions.ts";
import { workspaceKeyOf, workspaceOfPod } from "../update/observe.ts";
import { clearedBy, type Clearances } from "./clearances.ts";
import { observeWorkspace, type WorkspaceWorld } from "./observe.ts";
import type { Outcome } from "./outcome.ts";
import { performWorkspace, writeStatus, type Performer } from "./perform.ts";
import { conclude, planWorkspace, type Performed, type Plan } from "./plan.ts";
import type { GitHubAppTokens } from "./prepare-request.ts";
import { Retries } from "./retries.ts";
import type { WorkspaceSettings } from "./settings.ts";
import { eventOf, isSameStatus, statusOf } from "./status.ts";
import { isAsleep, type WorkspaceView } from "./view.ts";

interface WorkspaceControllerOptions {
  /** Writes through the leader's fence. */
  readonly client: Client;
  readonly reflectors: {
    readonly workspaces: Reflector<Workspace>;
    /** With `updateIndexers`. */
    readonly updates: Reflector<Update>;
    /** Of the label `auto.pulumi.com/component=workspace`. */
    readonly statefulSets: Reflector<Known<StatefulSet>>;
    /** Of the same label, with `podIndexers`. */
    readonly pods: Reflector<Known<Pod>>;
    readonly programs: Reflector<Program>;
  };
  readonly authority: Pick<Authority, "assess" | "workspaceCertificate">;
  readonly preparations: Preparations;
  readonly runs: Pick<Runs, "find">;
  readonly githubApps?: GitHubAppTokens;
  /** Told which Updates may begin. */
  readonly clearances?: Pick<Clearances, "set" | "clear">;
  readonly events: EventRecorder;
  readonly settings: WorkspaceSettings;
  /** Without it a changed Secret is noticed at the next look. */
  readonly references?: ReferenceWatch;
  readonly concurrency?: number;
  readonly log?: Logger;
  readonly metrics?: Registry;
}

export function workspaceController(options: WorkspaceControllerOptions): Controller {
  const { reflectors, log, metrics, concurrency } = options;
  const reconciler = new Reconciler(options, (key) => self.enqueue(key));
  const self: Controller = controller<Workspace>({
    name: "workspace-controller",
    reflector: reflectors.workspaces,
    owns: [{ reflector: reflectors.statefulSets, ownerKind: workspaceKind }],
    watches: [
      watching({ reflector: reflectors.pods, map: podKeys }),
      watching({ reflector: reflectors.updates, map: updateKeys }),
      watching({ reflector: reflectors.programs, map: (change) => programKeys(change, reflectors.workspaces) }),
    ],
    reconcile: (key, context) => reconciler.reconcile(key, context),
    ...(concurrency !== undefined && { concurrency }),
    ...(log && { log }),
    ...(metrics && { metrics }),
  });
  return {
    name: self.name,
    reflectors: self.reflectors,
    enqueue: (key) => self.enqueue(key),
    longestRunningMs: () => self.longestRunningMs(),
    async run(lifetime) {
      try {
        await self.run(lifetime);
      } finally {
        // Another may lead from now on: what was read in this term says nothing about the next.
        options.clearances?.clear();
      }
    },
  };
}

function podKeys({ before, after }: Change<Known<Pod>>): Key[] {
  const pod = after ?? before;
  const key = pod && workspaceOfPod(pod);
  return key === undefined ? [] : [key];
}

/** An Update's progress concerns nobody here: only that it comes, is in the pod, ends and goes. */
function updateKeys({ before, after }: Change<Update>): Key[] {
  const update = after ?? before;
  if (!update || (before && after && stateOf(before) === stateOf(after))) return [];
  return [workspaceKeyOf(update)];
}

const stateOf = (update: Update): string => `${isComplete(update)} ${update.status?.podUid ?? ""}`;

function programKeys({ before, after }: Change<Program>, { store }: Reflector<Workspace>): Key[] {
  const { name, namespace } = (after ?? before)?.metadata ?? {};
  return store
    .list()
    .filter(({ metadata, spec }) => metadata.namespace === namespace && spec?.program?.name === name)
    .map(keyOf);
}

/** A store is behind the API server: half a minute at most, where its watch has died. */
const staleMs = 1000;

class Reconciler {
  readonly #options: WorkspaceControllerOptions;
  readonly #world: WorkspaceWorld;
  readonly #wake: (key: Key) => void;
  readonly #retries = new Retries();
  /** StatefulSets as we left them. */
  readonly #written = new Map<Key, NonNullable<Performed["written"]>>();
  readonly #conflicts = new ConflictTimes();
  /** Those that would lose their backend with their pod. */
  readonly #sleepless = new Set<Key>();

  constructor(options: WorkspaceControllerOptions, wake: (key: Key) => void) {
    const { workspaces, updates, statefulSets, pods, programs } = options.reflectors;
    this.#options = options;
    this.#wake = wake;
    this.#world = {
      workspaces: workspaces.store,
      updates: updates.store,
      statefulSets: statefulSets.store,
      pods: pods.store,
      programs: programs.store,
      client: options.client,
      authority: options.authority,
      preparations: { hasAnswered: (pod) => options.preparations.hasAnswered(pod) },
      runs: options.runs,
      settings: options.settings,
      sleepless: this.#sleepless,
      ...(options.githubApps && { githubApps: options.githubApps }),
    };
  }

  async reconcile(key: Key, { now, monotonic, signal, log }: ReconcileContext): Promise<Result> {
    const view = await observeWorkspace(this.#world, key, { now, signal, ...this.#memoryOf(key, { now, monotonic }) });
    if (!view) return this.#gone(key);
    this.#followInputs(key, view);
    if (view.inputs?.losable) this.#sleepless.add(key);
    else if (view.inputs) this.#sleepless.delete(key);
    const plan = planWorkspace(view);
    const { client, authority, preparations } = this.#options;
    const performer = { client, authority, updates: this.#world.updates, preparations, wake: this.#wake, signal };
    const performed = await performWorkspace(performer, view, plan);
    if (performed.isStale) return requeueAfter(staleMs);
    if (performed.written) this.#written.set(key, performed.written);
    const { outcome, lookAt = Infinity } = conclude(view, plan, performed);
    for (const { kind } of performed.made ?? []) if (isWrite(kind)) log.info("step made", { step: kind });
    if (outcome.kind !== "unchanged") this.#conflicts.record(key, outcome.kind === "blocked", now);
    const retryAt = now + (this.#retries.schedule(key, { view, plan, outcome }, { monotonic }) ?? Infinity);
    await this.#report(performer, view, outcome);
    this.#options.clearances?.set(key, clearedBy(view, plan, outcome));
    const nextAt = Math.min(lookAt, retryAt);
    return requeueAt(Number.isFinite(nextAt) ? nextAt : undefined, now);
  }

  /** While it sleeps nothing is done for a changed Secret: what wakes it reads them all. */
  #followInputs(key: Key, view: WorkspaceView): void {
    const { references } = this.#options;
    const user = `workspace/${key}`;
    if (view.inputs) references?.follow(user, { objects: view.inputs.read, wake: () => this.#inputsChanged(key) });
    else if (isAsleep(view)) references?.forget(user);
  }

  /** It may be what a preparation has failed for: that is tried again at once. */
  #inputsChanged(key: Key): void {
    this.#retries.hasten(key);
    this.#wake(key);
  }

  #gone(key: Key): Result {
    this.#options.references?.forget(`workspace/${key}`);
    const { namespace = "", name } = parseKey(key);
    this.#options.preparations.forget({ namespace, name });
    this.#options.clearances?.set(key, []);
    this.#retries.delete(key);
    this.#conflicts.delete(key);
    this.#written.delete(key);
    this.#sleepless.delete(key);
    return done;
  }

  #memoryOf(
    key: Key,
    times: Pick<ReconcileContext, "now" | "monotonic">,
  ): Pick<WorkspaceView, "retryAt" | "writtenGeneration" | "conflictSince"> {
    const { namespace = "", name } = parseKey(key);
    const { workspaces, statefulSets } = this.#world;
    const retryAt = this.#retries.retryAt(key, workspaces.get(key) ?? {}, times);
    const written = this.#written.get(key);
    const conflictSince = this.#conflicts.since(key);
    const set = statefulSets.get(refKey({ namespace, name: statefulSetNameOf(name) }));
    return {
      ...(retryAt !== undefined && { retryAt }),
      ...(conflictSince !== undefined && { conflictSince }),
      ...(written && written.uid === set?.metadata.uid && { writtenGeneration: written.generation }),
    };
  }

  async #report(performer: Performer, view: WorkspaceView, outcome: Outcome): Promise<void> {
    const status = statusOf(view, outcome);
    if (isSameStatus(view.workspace.status, status)) return;
    const event = eventOf(view, outcome);
    await writeStatus(performer, view, status);
    if (event) this.#options.events.record(view.workspace, event);
  }
}

const isWrite = (kind: Plan["steps"][number]["kind"]): boolean => !["prepare", "forget", "look"].includes(kind);
