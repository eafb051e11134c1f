/**
 * How many updates run at the same time. A workspace holds a slot from before its pod is created or woken until its Update
 * ends, and one without a slot waits in a fair queue (slot-line.ts). A slot is for one run: the next one waits again.
 *
 * In memory only, and for one leadership term. The Updates that run hold their slots whatever happens: they are counted from
 * the store. Everyone else claims again after a restart, and keeps the place that the status shows. A Stack whose Workspace was
 * being prepared is first in its namespace.
 */
import { isComplete, type Update } from "@pko/api";
import {
  keyOf,
  metricsRegistry,
  namespaceOf,
  systemClock,
  type Clock,
  type Key,
  type Registry,
  type Store,
} from "@pko/kube";

import { isConditionTrue } from "../objects/conditions.ts";
import { workspaceKeyOf } from "../updates.ts";
import { SlotLine, type Place, type Turn } from "./slot-line.ts";

/** Who needs the slot of a workspace. "update/UID": an Update that waits. "start/UID": one that is about to start. */
export type Claimant = "stack" | "workspace" | `update/${string}` | `start/${string}`;

export const ofUpdate = (update: Update): Claimant => `update/${update.metadata.uid ?? ""}`;

export const starting = (update: Update): Claimant => `start/${update.metadata.uid ?? ""}`;

export type SlotView =
  | { readonly kind: "none" }
  | WaitingForSlot
  /** `forMs`: for how long. `isWanted`: someone waits who would get it. */
  | { readonly kind: "held"; readonly forMs: number; readonly isWanted: boolean };

export interface WaitingForSlot extends Place {
  readonly kind: "waiting";
  /** Whose limit is reached. The place is among those who wait for the same. */
  readonly limitOf: "operator" | "namespace";
  readonly limit: number;
  /** When the place is determined again. */
  readonly refreshAt: number;
}

export interface Slots {
  state(workspace: Key): SlotView;
  /** Takes a slot if one is free, or else waits for one. `turn`: what is known of an earlier wait; by default it begins now. */
  claim(workspace: Key, by: Claimant, turn?: Partial<Turn>): SlotView;
  /** The slot is returned, or the wait ends, when nobody needs it. */
  withdraw(workspace: Key, by: Claimant): void;
  /**
   * Nothing can start in the workspace: nobody needs its slot, except an Update that is about to start. A Stack that waits for
   * the slot keeps its place: its turn may come when it can fix the workspace.
   */
  giveUp(workspace: Key): void;
  /** From now on nobody has a claim. */
  clear(): void;
}

export interface SlotLimits {
  /** Of all namespaces together; 0 for none. */
  readonly total: number;
  /** Of one namespace; 0 for none. */
  readonly inNamespace: (namespace: string) => number;
}

interface SlotOptions {
  readonly limits: SlotLimits;
  readonly updates: Pick<Store<Update>, "active" | "subscribe">;
  /** Called for a workspace that has been given a slot for which it waited. */
  readonly wake: (workspace: Key) => void;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export const unlimitedSlots: Slots = {
  state: () => ({ kind: "held", forMs: 0, isWanted: false }),
  claim: () => ({ kind: "held", forMs: 0, isWanted: false }),
  withdraw: () => undefined,
  giveUp: () => undefined,
  clear: () => undefined,
};

export function slots(options: SlotOptions): Slots {
  return new SlotTable(options);
}

/** On the monotonic clock. */
interface Holding {
  readonly since: number;
}

interface UpdateChange {
  readonly before: Update | undefined;
  readonly after: Update | undefined;
}

interface Waiting {
  readonly since: number;
  shown?: WaitingForSlot;
}

/** The status shows the place, and is written no more often than this. */
const refresh = { leastMs: 30_000, mostMs: 600_000, msPerPlace: 1000 } as const;

/** How long a slot is held in which nothing runs: longer than any reasonable preparation takes. */
const longestHoldMs = 60 * 60_000;

class SlotTable implements Slots {
  readonly #options: SlotOptions;
  readonly #clock: Clock;
  readonly #metrics: ReturnType<typeof slotMetrics>;
  readonly #claims = new Map<Key, Set<Claimant>>();
  /** The Updates that run, by workspace. */
  readonly #running = new Map<Key, Set<Key>>();
  readonly #holdings = new Map<Key, Holding>();
  readonly #heldIn = new Map<string, number>();
  readonly #waiting = new Map<Key, Waiting>();
  readonly #line: SlotLine;

  constructor(options: SlotOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#line = new SlotLine({
      held: (namespace) => this.#heldIn.get(namespace) ?? 0,
      limit: (namespace) => orUnlimited(options.limits.inNamespace(namespace)),
    });
    this.#metrics = slotMetrics(options, { line: this.#line, held: this.#heldIn });
    for (const update of options.updates.active()) this.#observe(undefined, update);
    options.updates.subscribe(({ before, after }) => this.#observe(before, after));
  }

  state(workspace: Key): SlotView {
    if (this.#isPlaceOutdated(workspace)) {
      this.#expire();
      // A limit may have been raised.
      this.#grant();
    }
    const holding = this.#holdings.get(workspace);
    if (holding) {
      const forMs = this.#clock.monotonic() - holding.since;
      return { kind: "held", forMs, isWanted: this.#isWanted(namespaceOf(workspace)) };
    }
    const waiting = this.#waiting.get(workspace);
    return waiting ? this.#shown(workspace, waiting) : { kind: "none" };
  }

  claim(workspace: Key, by: Claimant, { rank = Infinity, since = Infinity }: Partial<Turn> = {}): SlotView {
    const claims = this.#claims.get(workspace) ?? new Set();
    this.#claims.set(workspace, claims.add(by));
    if (this.#holdings.has(workspace)) return this.state(workspace);
    if (!this.#waiting.has(workspace)) {
      this.#waiting.set(workspace, { since: this.#clock.monotonic() });
      const now = this.#clock.now();
      this.#line.add(workspace, { rank: Math.min(rank, now), since: Math.min(since, now) });
    }
    this.#grant(workspace);
    // The Workspace ignores an Update without a slot.
    if (by.startsWith("update/") && this.#holdings.has(workspace)) this.#options.wake(workspace);
    return this.state(workspace);
  }

  withdraw(workspace: Key, by: Claimant): void {
    const claims = this.#claims.get(workspace);
    if (!claims?.delete(by) || claims.size > 0) return;
    this.#claims.delete(workspace);
    this.#waiting.delete(workspace);
    this.#line.remove(workspace);
    this.#settle(workspace);
  }

  giveUp(workspace: Key): void {
    this.withdraw(workspace, "workspace");
    if (!this.#holdings.has(workspace)) return;
    for (const by of this.#claims.get(workspace) ?? []) if (!by.startsWith("start/")) this.withdraw(workspace, by);
  }

  clear(): void {
    this.#claims.clear();
    this.#waiting.clear();
    this.#line.clear();
    for (const workspace of this.#holdings.keys()) this.#settle(workspace);
  }

  /** An Update that was deleted and created again is another one, maybe of another workspace. */
  #observe(before: Update | undefined, after: Update | undefined): void {
    if (before && after && before.metadata.uid !== after.metadata.uid) {
      this.#observe(before, undefined);
      this.#observe(undefined, after);
      return;
    }
    const update = after ?? before;
    if (update) this.#observeOne(update, { before, after });
  }

  #observeOne(update: Update, { before, after }: UpdateChange): void {
    const workspace = workspaceKeyOf(update);
    const isRunning = after !== undefined && usesSlot(after);
    const running = this.#running.get(workspace) ?? new Set();
    if (isRunning) this.#running.set(workspace, running.add(keyOf(update)));
    else if (running.delete(keyOf(update)) && running.size === 0) this.#running.delete(workspace);
    const hasRun = before !== undefined && usesSlot(before) && !isRunning;
    const hasEnded = before !== undefined && !isComplete(before) && (!after || isComplete(after));
    // An Update that never started leaves the slot to what comes next in its workspace.
    if (hasRun) this.#drop(workspace);
    else if (hasEnded) for (const by of [ofUpdate(before), starting(before)]) this.withdraw(workspace, by);
    this.#settle(workspace);
  }

  #drop(workspace: Key): void {
    for (const by of this.#claims.get(workspace) ?? []) this.withdraw(workspace, by);
  }

  /** For whoever waits: a claimant whose passes fail never withdraws its claim. Its next pass claims again. */
  #expire(): void {
    const expired = this.#clock.monotonic() - longestHoldMs;
    for (const [workspace, { since }] of this.#holdings) {
      if (since <= expired && !this.#running.has(workspace)) this.#drop(workspace);
    }
  }

  /** Takes or returns the slot, as the claims and the running Updates require. */
  #settle(workspace: Key): void {
    const isClaimed = this.#claims.has(workspace) && !this.#waiting.has(workspace);
    if (isClaimed || this.#running.has(workspace)) this.#take(workspace);
    else if (this.#holdings.delete(workspace)) {
      this.#count(workspace, -1);
      this.#grant();
      // Nobody competes: who was served before must not occupy memory.
      if (this.#holdings.size === 0 && this.#line.size === 0) this.#line.clear();
    }
  }

  #take(workspace: Key): void {
    if (this.#holdings.has(workspace)) return;
    this.#holdings.set(workspace, { since: this.#clock.monotonic() });
    this.#count(workspace, 1);
    this.#waiting.delete(workspace);
    this.#line.remove(workspace);
  }

  /** `caller`: the workspace that claims a slot, and therefore does not need to be woken. */
  #grant(caller?: Key): void {
    while (this.#holdings.size < orUnlimited(this.#options.limits.total)) {
      const workspace = this.#line.take();
      if (workspace === undefined) return;
      const { since = this.#clock.monotonic() } = this.#waiting.get(workspace) ?? {};
      this.#metrics.waited((this.#clock.monotonic() - since) / 1000);
      this.#take(workspace);
      if (workspace !== caller) this.#options.wake(workspace);
    }
  }

  /** Whether someone waits for a slot that this namespace holds. One who waits for the limit of another namespace does not. */
  #isWanted(namespace: string): boolean {
    const { limits } = this.#options;
    const isFull = this.#holdings.size >= orUnlimited(limits.total);
    const isWaiting = (each: string): boolean =>
      each === namespace || (isFull && (this.#heldIn.get(each) ?? 0) < orUnlimited(limits.inNamespace(each)));
    return this.#line.namespaces().some(isWaiting);
  }

  #count(workspace: Key, change: 1 | -1): void {
    const namespace = namespaceOf(workspace);
    const count = (this.#heldIn.get(namespace) ?? 0) + change;
    if (count > 0) this.#heldIn.set(namespace, count);
    else this.#heldIn.delete(namespace);
  }

  #shown(workspace: Key, waiting: Waiting): WaitingForSlot {
    if (!waiting.shown || this.#isPlaceOutdated(workspace)) waiting.shown = this.#placed(workspace, this.#clock.now());
    return waiting.shown;
  }

  #isPlaceOutdated(workspace: Key): boolean {
    const waiting = this.#waiting.get(workspace);
    if (!waiting?.shown) return waiting !== undefined;
    const now = this.#clock.now();
    return now >= waiting.shown.refreshAt || waiting.shown.refreshAt > now + refresh.mostMs;
  }

  #placed(workspace: Key, now: number): WaitingForSlot {
    const { limits } = this.#options;
    const namespace = namespaceOf(workspace);
    const limit = limits.inNamespace(namespace);
    const isFull = (this.#heldIn.get(namespace) ?? 0) >= orUnlimited(limit);
    const place = isFull ? this.#line.placeInNamespace(workspace) : this.#line.placeOf(workspace);
    const refreshMs = Math.min(refresh.mostMs, Math.max(refresh.leastMs, place.position * refresh.msPerPlace));
    return {
      kind: "waiting",
      ...place,
      ...(isFull ? { limitOf: "namespace", limit } : { limitOf: "operator", limit: limits.total }),
      refreshAt: now + refreshMs,
    };
  }
}

const orUnlimited = (limit: number): number => (limit === 0 ? Infinity : limit);

/** One whose node may be lost, or that its agent does not stop, may stay like this for days: it must not block others. */
const usesSlot = (update: Update): boolean =>
  update.status?.podUid !== undefined && !isComplete(update) && !isConditionTrue(update, "Stalled");

const seconds = [0, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14_400];

interface Metered {
  readonly line: SlotLine;
  readonly held: ReadonlyMap<string, number>;
}

function slotMetrics({ metrics = metricsRegistry(), limits }: SlotOptions, { line, held }: Metered) {
  const limit = metrics.gauge({
    name: "update_slots_limit",
    help: "How many updates may run at the same time; 0 for no limit.",
  });
  const inUse = metrics.gauge({
    name: "update_slots_in_use",
    help: "Updates that run or are being prepared, by namespace.",
    labels: ["namespace"],
  });
  const waiting = metrics.gauge({
    name: "update_slots_waiting",
    help: "Workspaces that wait for a slot, by namespace.",
    labels: ["namespace"],
  });
  const waitingSince = metrics.gauge({
    name: "update_slots_waiting_since_timestamp_seconds",
    help: "When the longest current wait for a slot began (Unix time), by namespace.",
    labels: ["namespace"],
    // Without a limit: an alert must not miss a namespace.
    maxSeries: Infinity,
  });
  const waited = metrics.histogram({
    name: "update_slot_wait_seconds",
    help: "How long a workspace waited for a slot.",
    buckets: seconds,
  });
  limit.set({}, limits.total);
  metrics.onCollect(() => {
    inUse.clear();
    for (const [namespace, count] of held) inUse.set({ namespace }, count);
    waiting.clear();
    for (const [namespace, count] of line.sizes()) waiting.set({ namespace }, count);
    waitingSince.clear();
    for (const [namespace, since] of line.longestWaits()) waitingSince.set({ namespace }, since / 1000);
  });
  return { waited: (value: number): void => waited.observe({}, value) };
}
