/**
 * Time that passes only when nothing can run. Each process has its own clock, so that one of them can crash, freeze, or have
 * its wall clock set, while the others continue.
 */
import type { Clock } from "@pko/kube";

import type { SeededRandom } from "../../packages/kube/testing/seeded-random.ts";

interface Timer {
  readonly at: number;
  /** Decides between timers of the same time. */
  readonly order: number;
  readonly owner: VirtualProcess;
  readonly callback: () => void;
}

/** Of a run: far from the present, so that a reading of the real clock is noticed. */
const startMs = Date.UTC(2030, 0, 1);

export class VirtualTime {
  readonly #random: SeededRandom;
  /** The next one first. */
  #timers: Timer[] = [];
  #elapsed = 0;
  #steps = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  /** Milliseconds since the start of the run. */
  get elapsed(): number {
    return this.#elapsed;
  }

  /** The true time, in milliseconds since the epoch. */
  get now(): number {
    return startMs + this.#elapsed;
  }

  /** How many timers have fired. */
  get steps(): number {
    return this.#steps;
  }

  process(name: string): VirtualProcess {
    return new VirtualProcess(name, this);
  }

  /** Runs until the condition holds, and returns whether it did so within the time. */
  async runUntil(condition: () => boolean, withinMs: number): Promise<boolean> {
    const until = this.#elapsed + Math.ceil(withinMs);
    for (;;) {
      await settle();
      if (condition()) return true;
      const timer = this.#next(until);
      if (!timer) break;
      this.#fire(timer);
    }
    this.#elapsed = until;
    return condition();
  }

  async run(ms: number): Promise<void> {
    await this.runUntil(() => false, ms);
  }

  add(owner: VirtualProcess, ms: number, callback: () => void): () => void {
    // Whole milliseconds: sums of fractions may differ from what they add up to.
    const timer = { at: this.#elapsed + Math.ceil(Math.max(0, ms)), order: this.#random.next(), owner, callback };
    this.#timers.splice(this.#placeOf(timer), 0, timer);
    return () => this.#remove(timer);
  }

  /** Those of a dead process never fire. */
  forget(owner: VirtualProcess): void {
    this.#timers = this.#timers.filter((timer) => timer.owner !== owner);
  }

  #next(until: number): Timer | undefined {
    const next = this.#timers.find(({ owner }) => !owner.isFrozen);
    return next && next.at <= until ? next : undefined;
  }

  /** Where a timer is, or would be, by binary search. */
  #placeOf(timer: Timer): number {
    let [from, to] = [0, this.#timers.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      const other = this.#timers[middle];
      if (other && isBefore(other, timer)) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  #remove(timer: Timer): void {
    const place = this.#placeOf(timer);
    if (this.#timers[place] === timer) this.#timers.splice(place, 1);
  }

  #fire(timer: Timer): void {
    this.#remove(timer);
    // A timer of a process that was frozen is late.
    this.#elapsed = Math.max(this.#elapsed, timer.at);
    this.#steps++;
    timer.callback();
  }
}

const isBefore = (a: Timer, b: Timer): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

/** What has its own clock: a process of the operator, a component of the cluster, an agent. */
export class VirtualProcess {
  readonly name: string;
  readonly #time: VirtualTime;
  #wallOffset = 0;
  #isDead = false;
  #isFrozen = false;
  readonly #resumed: (() => void)[] = [];

  constructor(name: string, time: VirtualTime) {
    this.name = name;
    this.#time = time;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  readonly clock: Clock = {
    now: () => this.#time.now + this.#wallOffset,
    // Far from any wall clock time, like that of `manualClock`.
    monotonic: () => 1_000_000 + this.#time.elapsed,
    after: (ms, callback) => (this.#isDead ? () => undefined : this.#time.add(this, ms, callback)),
  };

  after(ms: number, callback: () => void): () => void {
    return this.clock.after(ms, callback);
  }

  /** Continues after `ms`; never, if the process dies. */
  async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => void this.after(ms, resolve));
  }

  /** Sets the wall clock forward or back. */
  stepWallClock(ms: number): void {
    this.#wallOffset += ms;
  }

  setWallClock(): void {
    this.#wallOffset = 0;
  }

  kill(): void {
    this.#isDead = true;
    this.#time.forget(this);
  }

  /** Like SIGSTOP: nothing of it runs until it is resumed. */
  freeze(): void {
    this.#isFrozen = true;
  }

  resume(): void {
    this.#isFrozen = false;
    for (const each of this.#resumed.splice(0)) each();
  }

  /** Runs it now, or when the process is resumed; never, if it is dead. */
  deliver(callback: () => void): void {
    if (this.#isDead) return;
    if (this.#isFrozen) this.#resumed.push(() => this.#isDead || callback());
    else callback();
  }
}

/** Code that yields to the event loop, such as the work queue, continues in the next turn. More than this is an endless loop. */
const maxTurns = 10_000;
const yieldTurn = globalThis.setImmediate;
/** How many calls of `setImmediate` wait for their turn. */
let yielding = 0;

/** For `globalThis`, so that `settle` knows what continues in the next turn of the event loop. */
export function countedImmediate(callback: () => void): ReturnType<typeof setImmediate> {
  yielding++;
  return yieldTurn(() => {
    yielding--;
    callback();
  });
}

/** In another turn of the event loop, every promise that does not wait for time has settled. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < maxTurns; turn++) {
    await new Promise<void>((resolve) => void yieldTurn(resolve));
    if (yielding === 0) return;
  }
  throw new Error("the simulated operator never waits");
}
