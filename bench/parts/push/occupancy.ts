/** How many Stacks hold a slot at a time, and for how long, as a watch shows it. */

export interface Occupancy {
  /** At the same time, in all namespaces together and in the busiest one. */
  readonly most: number;
  readonly mostInNamespace: number;
  /** How long each held its slot. */
  readonly heldMs: readonly number[];
}

/** Keys are `namespace/name`. */
export class SlotWatch {
  readonly #since = new Map<string, number>();
  readonly #heldMs = new Map<string, number>();
  #most = 0;
  #mostInNamespace = 0;

  get ended(): number {
    return this.#heldMs.size;
  }

  /** Only the first start of each counts. */
  start(key: string, at: number): void {
    if (this.#since.has(key) || this.#heldMs.has(key)) return;
    this.#since.set(key, at);
    const namespaces = Map.groupBy(this.#since.keys(), (each) => each.slice(0, each.indexOf("/")));
    this.#most = Math.max(this.#most, this.#since.size);
    this.#mostInNamespace = Math.max(this.#mostInNamespace, ...namespaces.values().map(({ length }) => length));
  }

  end(key: string, at: number): void {
    const since = this.#since.get(key);
    if (since === undefined) return;
    this.#since.delete(key);
    this.#heldMs.set(key, at - since);
  }

  get result(): Occupancy {
    return { most: this.#most, mostInNamespace: this.#mostInNamespace, heldMs: [...this.#heldMs.values()] };
  }
}

/** What the benchmark measures. */
export interface PushFigures extends Occupancy {
  readonly stacks: number;
  /** How many Stacks have deployed the pushed commit. */
  readonly deployed: number;
  /** From the first of these updates to the end of the last one. */
  readonly durationMs: number;
  /** Of a Stack in another namespace: from its request until its Update is created. */
  readonly quietMs: readonly number[];
  readonly crowdedMs: readonly number[];
}
