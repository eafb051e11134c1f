/** When keys are due: a heap with one timer for all of them, because there may be 100,000 keys. */
import type { Clock } from "../clock.ts";
import type { Key } from "../resource.ts";

export class Schedule {
  readonly #clock: Clock;
  readonly #onDue: (key: Key) => void;
  readonly #dueAt = new Map<Key, number>();
  /** A binary heap, the earliest first. An entry whose time differs from `#dueAt` is outdated. */
  #heap: Slot[] = [];
  #timer: { readonly at: number; readonly cancel: () => void } | undefined;

  /** Times are on the clock's monotonic scale. */
  constructor(clock: Clock, onDue: (key: Key) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#dueAt.size;
  }

  dueAt(key: Key): number | undefined {
    return this.#dueAt.get(key);
  }

  /** Replaces the time at which the key was due. */
  add(key: Key, at: number): void {
    this.#dueAt.set(key, at);
    this.#push({ key, at });
    if (this.#heap.length > 2 * this.#dueAt.size + maxOutdated) this.#rebuild();
    this.#setTimer();
  }

  remove(key: Key): void {
    this.#dueAt.delete(key);
  }

  clear(): void {
    this.#dueAt.clear();
    this.#heap = [];
    this.#setTimer();
  }

  #setTimer(): void {
    const at = this.#heap[0]?.at;
    if (this.#timer?.at === at) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (at === undefined) return;
    const cancel = this.#clock.after(at - this.#clock.monotonic(), () => this.#takeDue());
    this.#timer = { at, cancel };
  }

  #takeDue(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (let first = this.#heap[0]; first && first.at <= now; first = this.#heap[0]) {
      this.#pop();
      if (this.#dueAt.get(first.key) !== first.at) continue;
      this.#dueAt.delete(first.key);
      this.#onDue(first.key);
    }
    this.#setTimer();
  }

  #rebuild(): void {
    this.#heap = Array.from(this.#dueAt, ([key, at]) => ({ key, at })).toSorted((a, b) => a.at - b.at);
  }

  #push(slot: Slot): void {
    const heap = this.#heap;
    let index = heap.push(slot) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (timeOf(heap, parent) <= slot.at) break;
      swap(heap, index, parent);
      index = parent;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    heap[0] = last;
    for (let index = 0; ;) {
      const child = 2 * index + 1;
      const least = timeOf(heap, child + 1) < timeOf(heap, child) ? child + 1 : child;
      if (last.at <= timeOf(heap, least)) return;
      swap(heap, index, least);
      index = least;
    }
  }
}

interface Slot {
  readonly key: Key;
  readonly at: number;
}

const maxOutdated = 64;

const timeOf = (heap: readonly Slot[], index: number): number => heap[index]?.at ?? Infinity;

function swap(heap: Slot[], a: number, b: number): void {
  const [first, second] = [heap[a], heap[b]];
  if (!first || !second) return;
  heap[a] = second;
  heap[b] = first;
}
