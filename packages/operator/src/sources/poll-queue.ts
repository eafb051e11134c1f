/**
 * Decides which poll starts next, so that no tenant waits for the slow servers of another one. Namespaces take turns, and so do
 * the servers of a namespace. A poll takes a slot of everything that `PollLimits` names: one namespace, one host, and all suspect
 * polls have only a part of them, and the rest stays free for others, however many polls wait.
 */

export interface Poll {
  /** The namespaces of the Stacks that wait for it. It starts when it is the turn of any of them, and takes the slots of that one. See `join` and `leave`. */
  readonly namespaces: Set<string>;
  readonly host: string;
  /** The server, together with the credentials. */
  readonly endpoint: string;
  /** A user has requested it: it does not wait for those that test its endpoint. */
  readonly isRequested: boolean;
  /** Others of its endpoint, which may be quick, do not wait for it. */
  readonly isSlow?: boolean;
  /** Why it may hold a slot of this namespace for long, if anything indicates that. May change while it waits. */
  readonly suspicion: (namespace: string) => Suspicion | undefined;
}

/** `unproven`: nothing shows yet that it is quick. `failing`: its server did not respond last. */
export type Suspicion = "unproven" | "failing";

/** How many polls may run at the same time. */
export interface PollLimits {
  readonly total: number;
  readonly perHost: number;
  readonly perNamespace: number;
  readonly perHostOfNamespace: number;
  readonly suspects: number;
  readonly suspectsPerHost: number;
  readonly suspectsPerNamespace: number;
}

export interface StartedPoll<P> {
  readonly poll: P;
  /** When it started. */
  readonly isSuspect: boolean;
  /** Frees the slots. */
  readonly end: () => void;
}

/** Polls of one failing endpoint: they test whether it responds again. */
const maxTests = 2;

/** Of a namespace, before one of its suspects has a turn. */
const quickTurns = 8;

/** What a poll takes one of, and how many there are. */
type Slot = readonly [what: string, limit: number];

interface Entry<P> {
  readonly poll: P;
  isWaiting: boolean;
}

type Line<P> = Entry<P>[];

/** Lines of the endpoints, by host. */
type Hosts<P> = Rotation<Rotation<Line<P>>>;

/** Polls of one namespace. Suspects are apart: thousands of them may wait for slots that none of the others needs. */
class Lanes<P> {
  readonly quick: Hosts<P> = new Rotation();
  readonly suspects: Hosts<P> = new Rotation();
  #quickTurns = 0;

  /** Those that are quick come first, because they soon free their slots, but suspects have some of the turns. */
  take<R>(from: (hosts: Hosts<P>) => R | undefined): R | undefined {
    const isTurnOfSuspects = this.#quickTurns >= quickTurns;
    for (const hosts of isTurnOfSuspects ? [this.suspects, this.quick] : [this.quick, this.suspects]) {
      const result = from(hosts);
      if (result === undefined) continue;
      this.#quickTurns = hosts === this.quick ? this.#quickTurns + 1 : 0;
      return result;
    }
    return undefined;
  }

  get length(): number {
    return this.quick.length + this.suspects.length;
  }
}

export class PollQueue<P extends Poll> {
  readonly #limits: PollLimits;
  readonly #namespaces = new Rotation<Lanes<P>>();
  readonly #entries = new Map<P, Entry<P>>();
  readonly #running = new Counts();

  constructor(limits: PollLimits) {
    this.#limits = limits;
  }

  push(poll: P): void {
    const entry = { poll, isWaiting: true };
    this.#entries.set(poll, entry);
    for (const namespace of poll.namespaces) this.#enter(entry, namespace);
  }

  /** While the poll waits, it does so in the line of this namespace as well. */
  join(poll: P, namespace: string): void {
    if (poll.namespaces.has(namespace)) return;
    poll.namespaces.add(namespace);
    const entry = this.#entries.get(poll);
    if (entry) this.#enter(entry, namespace);
  }

  /** Nobody in this namespace waits for the poll any longer. Its entry in the line is skipped. */
  leave(poll: P, namespace: string): void {
    poll.namespaces.delete(namespace);
  }

  #enter(entry: Entry<P>, namespace: string): void {
    const { poll } = entry;
    const { quick, suspects } = this.#namespaces.line(namespace, () => new Lanes<P>());
    const lane = poll.suspicion(namespace) ? suspects : quick;
    const lines = lane.line(poll.host, () => new Rotation<Line<P>>());
    lines.line(`${poll.endpoint} ${poll.isRequested} ${poll.isSlow}`, () => []).push(entry);
  }

  /** Suspects of this host, which wait for slots of suspects, may be none any longer. */
  reconsider(namespace: string, host: string): void {
    const lines = this.#namespaces.get(namespace)?.suspects.remove(host);
    for (const line of lines?.all() ?? [])
      for (const entry of line) if (isWaitingIn(entry, namespace)) this.#enter(entry, namespace);
  }

  remove(poll: P): void {
    const entry = this.#entries.get(poll);
    if (entry) entry.isWaiting = false;
    this.#entries.delete(poll);
  }

  get waiting(): number {
    return this.#entries.size;
  }

  get oldest(): P | undefined {
    return this.#entries.keys().next().value;
  }

  get running(): number {
    return this.#running.of(all);
  }

  /** Undefined if no poll waits that may start now. */
  next(): StartedPoll<P> | undefined {
    const { total, suspects } = this.#limits;
    if (this.#running.of(all) >= total) return undefined;
    // Thousands of namespaces may have only suspects, and nothing else has to be known about them.
    const mayStartSuspects = this.#running.of("suspects") < suspects;
    return this.#namespaces.take((namespace, lanes) => {
      if (!mayStartSuspects && lanes.quick.length === 0) return undefined;
      if (!this.#areFree(this.#slotsOf(namespace))) return undefined;
      return lanes.take((hosts) => {
        if (hosts === lanes.suspects && !this.#areFree(this.#suspectSlotsOf(namespace))) return undefined;
        return hosts.take((host, lines) => {
          if (!this.#areFree(this.#hostSlotsOf(host, namespace))) return undefined;
          if (hosts === lanes.suspects && !this.#areFree(this.#suspectSlotsOfHost(host))) return undefined;
          return lines.take((_, line) => this.#takeFirst(line, namespace));
        });
      });
    });
  }

  #takeFirst(line: Line<P>, namespace: string): StartedPoll<P> | undefined {
    for (let entry = line[0]; entry; entry = line[0]) {
      const { poll } = entry;
      const isWaiting = isWaitingIn(entry, namespace);
      const suspicion = isWaiting ? poll.suspicion(namespace) : undefined;
      const lacksSuspectSlot = suspicion && !this.#hasSuspectSlot(poll, namespace);
      if (suspicion === "failing" && !lacksSuspectSlot && !this.#areFree(this.#testSlotsOf(poll, namespace)))
        return undefined;
      line.shift();
      // It has become a suspect while it waited, and no longer waits among the others.
      if (lacksSuspectSlot) this.#enter(entry, namespace);
      else if (isWaiting) return this.#start(poll, namespace, suspicion);
    }
    return undefined;
  }

  #hasSuspectSlot({ host }: P, namespace: string): boolean {
    return this.#areFree(this.#suspectSlotsOf(namespace)) && this.#areFree(this.#suspectSlotsOfHost(host));
  }

  #slotsOf(namespace: string): readonly Slot[] {
    const { total, perNamespace } = this.#limits;
    return [
      [all, total],
      [`namespace ${namespace}`, perNamespace],
    ];
  }

  #suspectSlotsOf(namespace: string): readonly Slot[] {
    const { suspects, suspectsPerNamespace } = this.#limits;
    return [
      ["suspects", suspects],
      [`suspects of namespace ${namespace}`, suspectsPerNamespace],
    ];
  }

  #hostSlotsOf(host: string, namespace: string): readonly Slot[] {
    const { perHost, perHostOfNamespace } = this.#limits;
    return [
      [`host ${host}`, perHost],
      [`host ${host} of namespace ${namespace}`, perHostOfNamespace],
    ];
  }

  #suspectSlotsOfHost(host: string): readonly Slot[] {
    return [[`suspects of host ${host}`, this.#limits.suspectsPerHost]];
  }

  #testSlotsOf({ endpoint, isRequested }: P, namespace: string): readonly Slot[] {
    return [[`tests of ${endpoint} of namespace ${namespace}`, isRequested ? Infinity : maxTests]];
  }

  #areFree(slots: readonly Slot[]): boolean {
    return slots.every(([what, limit]) => this.#running.of(what) < limit);
  }

  #start(poll: P, namespace: string, suspicion?: Suspicion): StartedPoll<P> {
    this.remove(poll);
    const taken = [
      ...this.#slotsOf(namespace),
      ...this.#hostSlotsOf(poll.host, namespace),
      ...(suspicion ? [...this.#suspectSlotsOf(namespace), ...this.#suspectSlotsOfHost(poll.host)] : []),
      ...(suspicion === "failing" ? this.#testSlotsOf(poll, namespace) : []),
    ];
    for (const [what] of taken) this.#running.add(what, 1);
    const end = (): void => {
      for (const [what] of taken.splice(0)) this.#running.add(what, -1);
    };
    return { poll, isSuspect: suspicion !== undefined, end };
  }
}

const all = "all";

const isWaitingIn = ({ poll, isWaiting }: Entry<Poll>, namespace: string): boolean =>
  isWaiting && poll.namespaces.has(namespace);

/** Named lines that take turns. Empty ones are dropped. */
class Rotation<L extends { readonly length: number }> {
  readonly #lines = new Map<string, L>();
  #order: string[] = [];
  #turn = 0;

  get length(): number {
    return this.#order.length;
  }

  all(): Iterable<L> {
    return this.#lines.values();
  }

  get(name: string): L | undefined {
    return this.#lines.get(name);
  }

  remove(name: string): L | undefined {
    const line = this.#lines.get(name);
    if (!line) return undefined;
    const index = this.#order.indexOf(name);
    this.#drop(name, index);
    if (index < this.#turn) this.#turn--;
    if (this.#turn >= this.length) this.#turn = 0;
    return line;
  }

  line(name: string, create: () => L): L {
    const known = this.#lines.get(name);
    if (known) return known;
    const line = create();
    this.#lines.set(name, line);
    this.#order.push(name);
    return line;
  }

  /** The first result, beginning with the line whose turn it is. */
  take<R>(from: (name: string, line: L) => R | undefined): R | undefined {
    for (let left = this.length; left > 0; left--) {
      const name = this.#order[this.#turn] ?? "";
      const line = this.#lines.get(name);
      const result = line && from(name, line);
      if (line && line.length > 0) this.#turn++;
      else this.#drop(name, this.#turn);
      if (this.#turn >= this.length) this.#turn = 0;
      if (result !== undefined) return result;
    }
    return undefined;
  }

  #drop(name: string, index: number): void {
    this.#lines.delete(name);
    this.#order.splice(index, 1);
  }
}

/** Numbers by name. Those that are zero take no space. */
class Counts {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(name: string, by: number): void {
    const count = this.of(name) + by;
    if (count === 0) this.#counts.delete(name);
    else this.#counts.set(name, count);
  }
}
