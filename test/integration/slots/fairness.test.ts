/** Properties of slots with random arrivals and durations: the limits hold, everyone gets a slot, and nobody waits for a crowd. */
import { expect, test } from "bun:test";
import { manualClock, type Key } from "@pko/kube";
import { slots, type SlotLimits, type Slots } from "@pko/operator";
import { seededRandom, testSeed, type SeededRandom } from "@pko/testkit";

/** Time passes in turns. Each workspace runs for the given number of turns when it gets its slot. */
class Office {
  readonly table: Slots;
  readonly #limits: SlotLimits;
  readonly #durations = new Map<Key, number>();
  readonly #running = new Map<Key, number>();
  readonly #arrivals = new Map<Key, number>();
  /** How many turns each has waited. */
  readonly waits = new Map<Key, number>();
  #turn = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
    const updates = { active: () => [], subscribe: () => () => undefined };
    this.table = slots({ limits, updates, clock: manualClock(), wake: (key) => this.#start(key) });
  }

  get waiting(): number {
    return this.#arrivals.size - this.waits.size;
  }

  arrive(key: Key, duration: number): void {
    this.#arrivals.set(key, this.#turn);
    this.#durations.set(key, duration);
    if (this.table.claim(key, "stack").kind === "held") this.#start(key);
  }

  turn(): void {
    this.#turn++;
    for (const [key, end] of this.#running) {
      if (end > this.#turn) continue;
      this.#running.delete(key);
      this.table.withdraw(key, "stack");
    }
    this.#check();
  }

  #start(key: Key): void {
    this.waits.set(key, this.#turn - (this.#arrivals.get(key) ?? 0));
    this.#running.set(key, this.#turn + (this.#durations.get(key) ?? 1));
  }

  #check(): void {
    expect(this.#running.size).toBeLessThanOrEqual(this.#limits.total);
    const namespaces = Map.groupBy(this.#running.keys(), (key) => key.split("/")[0] ?? "");
    for (const [namespace, keys] of namespaces) {
      expect(keys.length).toBeLessThanOrEqual(this.#limits.inNamespace(namespace) || Infinity);
    }
    // No slot is free while someone waits who may have it.
    if (this.#running.size === this.#limits.total) return;
    for (const [key] of this.#arrivals) {
      const [namespace = ""] = key.split("/");
      const isFull = (namespaces.get(namespace)?.length ?? 0) === (this.#limits.inNamespace(namespace) || Infinity);
      expect(this.waits.has(key) || isFull).toBe(true);
    }
  }
}

const seed = testSeed("slots");

test.each(Array.from({ length: 20 }, (_, index) => seed + index))(
  "the limits hold, no slot is wasted, and everyone gets one (TEST_SEED=%d)",
  (each) => {
    const random = seededRandom(each);
    const total = 1 + random.below(6);
    const inNamespace = random.below(3) === 0 ? 0 : 1 + random.below(4);
    const office = new Office({ total, inNamespace: () => inNamespace });
    for (let index = 0; index < 200; index++) {
      arriveAtRandom(office, random, index);
      if (random.below(2) === 0) office.turn();
    }
    for (let left = 200 * 5; left > 0 && office.waiting > 0; left--) office.turn();
    expect(office.waiting).toBe(0);
  },
);

const arriveAtRandom = (office: Office, random: SeededRandom, index: number): void =>
  office.arrive(`team-${random.below(5)}/${index}`, 1 + random.below(5));

test.each([1, 4, 20])(
  "a lone tenant waits for one slot at most while another has a thousand waiting, with a limit of %d",
  (total) => {
    const random = seededRandom(seed);
    const office = new Office({ total, inNamespace: () => 0 });
    const longest = 7;
    for (let index = 0; index < 1000; index++) office.arrive(`crowd/${index}`, 1 + random.below(longest));
    for (let visit = 0; visit < 50; visit++) {
      office.arrive(`lone/${visit}`, 1);
      while (!office.waits.has(`lone/${visit}`)) office.turn();
      expect(office.waits.get(`lone/${visit}`)).toBeLessThanOrEqual(longest);
      office.turn();
    }
  },
);
