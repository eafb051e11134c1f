/**
 * The reconciler of every controller. A definition has what is particular to a kind; the order is the same for all:
 *
 *   observe ──▶ View ──▶ plan ──▶ perform each step ──▶ write the status ──▶ record events ──▶ requeue
 *   (reads)               ▲            │  (writes)       (only if it differs)
 *                         └── facts ───┘
 *
 * `observe` only reads. `plan`, `status`, `eventsOf` and `remember` are pure. `perform` writes, and what a step learns comes
 * back as facts of the view, with which the plan is made again.
 *
 * A pass that finds the API server ahead of the stores ends as stale, without a status, and is retried with backoff. So
 * every pass may be interrupted anywhere: the next one observes what was done and continues.
 */
import { isDeepStrictEqual } from "node:util";

import type { Client } from "../client/client.ts";
import { isBadRequest, isConflict, isInvalid, isNotFound, type ApiError } from "../client/errors.ts";
import { backoffDelay, type BackoffPolicy } from "../controller/backoff.ts";
import type { Reconcile, ReconcileContext } from "../controller/controller.ts";
import { done, requeueAfter, requeueAt, retry, type Result } from "../controller/queue.ts";
import { keyOf, type Key, type KubeObject, type Resource } from "../resource.ts";
import type { EventNote, EventRecorder } from "../telemetry/events.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Plan } from "./plan.ts";

/** The result of a step. */
export type Performed<View> =
  /** The pass continues with the next step. `facts` are part of the view from here on. */
  | { readonly kind: "done"; readonly facts?: Partial<View> }
  /** The facts may change the plan: the remaining steps are dropped, and the plan is made again. */
  | { readonly kind: "replan"; readonly facts: Partial<View> }
  /** The API server does not have what was observed. */
  | { readonly kind: "stale"; readonly error?: ApiError };

/** For steps that learn nothing, of any kind. */
export const stepDone = { kind: "done" } as const;
export const stepStale = { kind: "stale" } as const;

export interface Moment<Memory> extends Pick<ReconcileContext, "now" | "monotonic" | "signal"> {
  /** What this process remembers about the object: from an earlier pass, unless it was changed since. */
  readonly memory: Memory | undefined;
}

interface ObjectWithStatus extends KubeObject {
  readonly status?: object;
}

interface AnyStep {
  readonly kind: string;
}

export interface ReconcilerDefinition<T extends ObjectWithStatus, View, Step extends AnyStep, Outcome, Memory> {
  readonly resource: Resource<T>;
  /** Must be fenced: it writes nothing unless this process leads. */
  readonly client: Client;
  /** Of the status. */
  readonly fieldManager: string;
  readonly events: EventRecorder;
  /** By key, and lost at a restart. Other parts of the controller may change it between passes. */
  readonly memory?: Map<Key, Memory>;
  /** Steps that change no object: logged at debug level only. */
  readonly quietSteps?: ReadonlySet<Step["kind"]>;

  /** Undefined for an object that does not exist. */
  readonly observe: (key: Key, moment: Moment<Memory>) => Promise<View | undefined> | View | undefined;
  readonly objectIn: (view: View) => T;
  readonly plan: (view: View) => Plan<Step, Outcome>;
  /** A conflict, or an object that was deleted in the meantime, makes the view stale. */
  readonly perform: (step: Step, context: PerformContext<View>) => Promise<Performed<View>>;
  /** The whole status. It is written only if it differs, and only while the object is as it was observed. */
  readonly status: (view: View, plan: Plan<Step, Outcome>) => NonNullable<T["status"]>;
  /** Written instead if the API server rejects the status as invalid, so that the result is recorded in any case. */
  readonly fallbackStatus?: (
    view: View,
    plan: Plan<Step, Outcome>,
    error: ApiError,
  ) => FallbackStatus<NonNullable<T["status"]>, View> | undefined;
  readonly progress?: ProgressReports<NonNullable<T["status"]>>;
  /** Recorded after the status, so that the status already shows what an event reports. */
  readonly eventsOf?: (view: View, plan: Plan<Step, Outcome>) => readonly EventNote[];
  /** What the next pass needs to know and no object shows; undefined if there is nothing. */
  readonly remember?: (view: View, plan: Plan<Step, Outcome>, moment: Moment<Memory>) => Memory | undefined;
  /** For metrics and logs, and for other controllers in this process. */
  readonly publish?: (key: Key, settled: Published<View, Step, Outcome>) => void;
  /** Called for an object that does not exist. */
  readonly cleanUp?: (key: Key, signal: AbortSignal) => Promise<void> | void;
}

/** People can follow it, and what takes a few seconds does not cost a write for each of its steps. */
export interface ProgressReports<Status> {
  /** The status without what only describes progress. If nothing else changes, it is written at most this often. */
  readonly without: (status: Status) => unknown;
  readonly everyMs: number;
}

export interface FallbackStatus<Status, View> {
  readonly status: Status;
  /** Part of the view from here on, for the events that report the rejection. */
  readonly facts?: Partial<View>;
}

export interface PerformContext<View> {
  readonly view: View;
  readonly signal: AbortSignal;
}

/** The final plan of a pass. Its steps are those that were performed. */
interface Settled<View, Step, Outcome> {
  readonly view: View;
  readonly plan: Plan<Step, Outcome>;
}

interface Published<View, Step, Outcome> extends Settled<View, Step, Outcome> {
  /** Has the controller and the object as keys. */
  readonly log: Logger;
  readonly reconcileID: string;
}

/** More plans in one pass mean that the facts of a step do not reach the rule that requested it. */
const maxPlans = 10;

interface WrittenStatus {
  /** On the monotonic clock. */
  readonly at: number;
  /** The resourceVersion of the object before; undefined if the write changed nothing. */
  readonly replacedVersion?: string;
}

/** A version of an object that the API server does not have any more. */
interface OutdatedVersion {
  readonly version: string | undefined;
  /** How often the status was rejected because of that. */
  readonly rejections: number;
  /** On the monotonic clock. */
  readonly pausedUntil: number;
}

/**
 * Until the store shows another version, the status would be rejected again. Changes of other objects must not lead to a pass sooner:
 * after a restore of etcd, each pass may create an object that the garbage collector deletes at once, because its owner does not exist.
 */
const rejectionBackoff: BackoffPolicy = { baseMs: 100, factor: 2, capMs: 30_000, jitter: 0 };

/** If the watch is broken, a later comparison finds out. */
const behindMs = 1000;
/** After that, the object may really be in this version again, because etcd was restored from a backup. */
const maxBehindMs = 2 * 60_000;

export function reconciler<T extends ObjectWithStatus, View, Step extends AnyStep, Outcome, Memory>(
  definition: ReconcilerDefinition<T, View, Step, Outcome, Memory>,
): Reconcile {
  const machine = new Reconciler(definition);
  return (key, context) => machine.reconcile(key, context);
}

class Reconciler<T extends ObjectWithStatus, View, Step extends AnyStep, Outcome, Memory> {
  readonly #definition: ReconcilerDefinition<T, View, Step, Outcome, Memory>;
  readonly #memory: Map<Key, Memory>;
  /** The last write of the status of an object by this process. */
  readonly #written = new Map<Key, WrittenStatus>();
  readonly #outdated = new Map<Key, OutdatedVersion>();

  constructor(definition: ReconcilerDefinition<T, View, Step, Outcome, Memory>) {
    this.#definition = definition;
    this.#memory = definition.memory ?? new Map<Key, Memory>();
  }

  async reconcile(key: Key, context: ReconcileContext): Promise<Result> {
    const observed = await this.#definition.observe(key, this.#moment(key, context));
    if (observed === undefined) {
      this.#memory.delete(key);
      this.#written.delete(key);
      this.#outdated.delete(key);
      return (await unlessStale(context, () => this.#cleanUp(key, context))) ?? retry;
    }
    if (this.#isBehind(key, observed, context)) return requeueAfter(behindMs);
    const outdated = this.#outdatedAs(key, observed);
    const pauseMs = (outdated?.pausedUntil ?? -Infinity) - context.monotonic;
    if (pauseMs > 0) return requeueAfter(pauseMs);
    const settled = await this.#settle(observed, context);
    if (!settled) return retry;
    const delayMs = this.#progressDelay(key, settled, context);
    const failures = Math.max(context.failures, outdated?.rejections ?? 0);
    const write = (): Promise<Settled<View, Step, Outcome>> => this.#writeStatus(key, settled, context);
    const written = delayMs > 0 ? settled : await unlessStale({ ...context, failures }, write);
    if (!written) {
      this.#rejected(key, observed, context);
      return retry;
    }
    this.#conclude(key, written, context);
    const { requeueAt: at = Infinity } = written.plan;
    const next = delayMs > 0 ? Math.min(at, context.now + delayMs) : at;
    return requeueAt(Number.isFinite(next) ? next : undefined, context.now);
  }

  /** The store does not show what this process has written: the status would be rejected. The watch enqueues the object soon. */
  #isBehind(key: Key, observed: View, { monotonic }: ReconcileContext): boolean {
    const { resourceVersion } = this.#definition.objectIn(observed).metadata;
    const written = this.#written.get(key);
    if (!written || resourceVersion === undefined || monotonic - written.at > maxBehindMs) return false;
    return resourceVersion === written.replacedVersion;
  }

  #outdatedAs(key: Key, observed: View): OutdatedVersion | undefined {
    const outdated = this.#outdated.get(key);
    return outdated?.version === this.#definition.objectIn(observed).metadata.resourceVersion ? outdated : undefined;
  }

  #rejected(key: Key, observed: View, { monotonic }: ReconcileContext): void {
    const { resourceVersion: version } = this.#definition.objectIn(observed).metadata;
    const rejections = (this.#outdatedAs(key, observed)?.rejections ?? 0) + 1;
    const pausedUntil = monotonic + backoffDelay(rejectionBackoff, rejections);
    this.#outdated.set(key, { version, rejections, pausedUntil });
  }

  /** How long a status may wait that reports only progress. One that an event accompanies is written immediately. */
  #progressDelay(key: Key, { view, plan }: Settled<View, Step, Outcome>, { monotonic }: ReconcileContext): number {
    const { objectIn, status, progress, eventsOf } = this.#definition;
    const before = objectIn(view).status;
    const writtenAt = this.#written.get(key)?.at;
    if (!progress || !before || writtenAt === undefined) return 0;
    const wanted = status(view, plan);
    if (isDeepStrictEqual(wanted, before) || (eventsOf?.(view, plan) ?? []).length > 0) return 0;
    const isProgress = isDeepStrictEqual(progress.without(wanted), progress.without(before));
    return isProgress ? writtenAt + progress.everyMs - monotonic : 0;
  }

  #moment(key: Key, { now, monotonic, signal }: ReconcileContext): Moment<Memory> {
    return { now, monotonic, signal, memory: this.#memory.get(key) };
  }

  /** Undefined if the view is stale. */
  async #settle(observed: View, context: ReconcileContext): Promise<Settled<View, Step, Outcome> | undefined> {
    const { signal } = context;
    const performed: Step[] = [];
    let view = observed;
    for (let plans = 0; plans < maxPlans; plans++) {
      const plan = this.#definition.plan(view);
      let isSettled = true;
      for (const step of plan.steps) {
        const result = await this.#perform(step, { view, signal });
        if (result.kind === "stale") {
          logStale(context, { step: step.kind, error: result.error });
          return undefined;
        }
        this.#logStep(context, step, result.kind);
        view = withFacts(view, result.facts);
        isSettled = result.kind === "done";
        if (!isSettled) break;
        performed.push(step);
      }
      if (isSettled) return { view, plan: { ...plan, steps: performed } };
    }
    throw new Error(`no plan settled: after ${maxPlans} plans there are still new facts`);
  }

  async #cleanUp(key: Key, { signal }: ReconcileContext): Promise<Result> {
    await this.#definition.cleanUp?.(key, signal);
    return done;
  }

  async #perform(step: Step, context: PerformContext<View>): Promise<Performed<View>> {
    try {
      return await this.#definition.perform(step, context);
    } catch (error) {
      if (isStale(error)) return { kind: "stale", error };
      throw error;
    }
  }

  #logStep({ log }: ReconcileContext, { kind: step }: Step, result: "done" | "replan"): void {
    const level = this.#definition.quietSteps?.has(step) ? "debug" : "info";
    log[level](result === "done" ? "step performed" : "step led to another plan", { step });
  }

  async #writeStatus(
    key: Key,
    settled: Settled<View, Step, Outcome>,
    { signal, monotonic }: ReconcileContext,
  ): Promise<Settled<View, Step, Outcome>> {
    const { view, plan } = settled;
    const { status, fallbackStatus } = this.#definition;
    const object = this.#definition.objectIn(view);
    const wanted = status(view, plan);
    if (isDeepStrictEqual(wanted, object.status ?? {})) return settled;
    try {
      this.#written.set(key, { at: monotonic, ...(await this.#patchStatus(object, wanted, signal)) });
      return settled;
    } catch (error) {
      const fallback = isInvalid(error) || isBadRequest(error) ? fallbackStatus?.(view, plan, error) : undefined;
      if (!fallback) throw error;
      this.#written.set(key, { at: monotonic, ...(await this.#patchStatus(object, fallback.status, signal)) });
      return { view: withFacts(view, fallback.facts), plan };
    }
  }

  async #patchStatus(
    { metadata }: T,
    status: object,
    signal: AbortSignal,
  ): Promise<Pick<WrittenStatus, "replacedVersion">> {
    const { client, resource, fieldManager } = this.#definition;
    const { name = "", namespace, resourceVersion } = metadata;
    const body = [
      { op: "replace", path: "/metadata/resourceVersion", value: resourceVersion },
      { op: "add", path: "/status", value: status },
    ];
    const ref = { name, ...(namespace !== undefined && { namespace }) };
    const options = { patch: { type: "json", body }, subresource: "status", fieldManager, signal } as const;
    const written = await client.patch(resource, ref, options);
    this.#outdated.delete(keyOf(written));
    const isReplaced = resourceVersion !== undefined && written.metadata.resourceVersion !== resourceVersion;
    return isReplaced ? { replacedVersion: resourceVersion } : {};
  }

  #conclude(key: Key, { view, plan }: Settled<View, Step, Outcome>, context: ReconcileContext): void {
    const { events, eventsOf, remember, publish, objectIn } = this.#definition;
    for (const event of eventsOf?.(view, plan) ?? []) events.record(objectIn(view), event);
    const remembered = remember?.(view, plan, this.#moment(key, context));
    if (remembered === undefined) this.#memory.delete(key);
    else this.#memory.set(key, remembered);
    publish?.(key, { view, plan, log: context.log, reconcileID: context.reconcileID });
  }
}

const isStale = (error: unknown): error is ApiError => isConflict(error) || isNotFound(error);

/** Undefined if what was observed has changed since, or was deleted. */
async function unlessStale<T>(context: ReconcileContext, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!isStale(error)) throw error;
    logStale(context, { error });
    return undefined;
  }
}

/** The stores catch up in a moment. If they do not, a watch is broken, or the error has another cause. */
const warnAfter = 5;

function logStale(
  { log, failures }: ReconcileContext,
  keys: { readonly step?: string; readonly error?: unknown },
): void {
  log[failures < warnAfter ? "debug" : "warn"]("the API server does not have what was observed", keys);
}

function withFacts<View>(view: View, facts: Partial<View> | undefined): View {
  return { ...view, ...facts };
}
