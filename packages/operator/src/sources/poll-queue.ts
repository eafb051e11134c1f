/**
 * Decides which poll starts next, so that no tenant waits for the slow servers of another one. Namespaces take turns, and so do
 * the servers of a namespace. One namespace, one host, and all suspect polls have only a part of the slots: the rest stays
 * free for others, however many polls wait.
 */

export interface Poll {
  /** The namespaces of the Stacks that wait for it. It starts when it is the turn of any of them. */
  readonly namespaces: ReadonlySet<string>;
  readonly host: string;
  /** The server, together with the credentials and the namespace. */
  readonly endpoint: string;
  /** A user has requested it: it does not wait for those that test its endpoint. */
  readonly isRequested: boolean;
  /** Others of its endpoint, which may be quick, do not wait for it. */
  readonly isSlow?: boolean;
  /** Whether it may hold its slot for long. May change while it waits. */
  readonly isSuspect: boolean;
}

export interface PollLimits {
  /** Polls that may run at the same time. */
  readonly total: number;
  readonly perHost: number;
  readonly perNamespace: number;
  /** For all suspects together. */
  readonly suspects: number;
  readonly suspectsPerNamespace: number;
}

export interface StartedPoll<P> {
  readonly poll: P;
  /** Frees the slot. */
  readonly end: () => void;
}

/** Of one suspect endpoint. */
const maxTests = 2;

interface Entry<P> {
  readonly poll: P;
  isWaiting: boolean;
}

type Line<P> = Entry<P>[];

export class PollQueue<P extends Poll> {
  readonly #limits: PollLimits;
  readonly #namespaces = new Rotation<Rotation<Line<P>>>();
  readonly #entries = new Map<P, Entry<P>>();
  readonly #running = new Counts();

  constructor(limits: PollLimits) {
    this.#limits = limits;
  }

  push(poll: P): void {
    this.#entries.set(poll, { poll, isWaiting: true });
    for (const namespace of poll.namespaces) this.join(poll, namespace);
  }

  /** A waiting poll waits in the line of this namespace as well. */
  join(poll: P, namespace: string): void {
    const entry = this.#entries.get(poll);
    if (!entry) return;
    const endpoints = this.#namespaces.line(namespace, () => new Rotation<Line<P>>());
    endpoints.line(`${poll.endpoint} ${poll.isRequested} ${poll.isSlow}`, () => []).push(entry);
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
    const { total, perNamespace, suspects, suspectsPerNamespace } = this.#limits;
    if (this.running >= total) return undefined;
    return this.#namespaces.take((namespace, endpoints) => {
      if (this.#running.of(`namespace ${namespace}`) >= perNamespace) return undefined;
      const hasSuspectSlot =
        this.#running.of(suspect) < suspects && this.#running.of(`${suspect} ${namespace}`) < suspectsPerNamespace;
      return endpoints.take((_, line) => {
        while (line[0]?.isWaiting === false) line.shift();
        const [entry] = line;
        if (!entry || !this.#mayStart(entry.poll, hasSuspectSlot)) return undefined;
        line.shift();
        return this.#start(entry.poll, namespace);
      });
    });
  }

  /** Thousands of suspects may wait, so what excludes them comes first. */
  #mayStart({ host, endpoint, isRequested, isSuspect }: P, hasSuspectSlot: boolean): boolean {
    if (isSuspect && !hasSuspectSlot) return false;
    if (this.#running.of(`host ${host}`) >= this.#limits.perHost) return false;
    return !isSuspect || isRequested || this.#running.of(`endpoint ${endpoint}`) < maxTests;
  }

  #start(poll: P, namespace: string): StartedPoll<P> {
    this.remove(poll);
    const counted = [
      all,
      `namespace ${namespace}`,
      `host ${poll.host}`,
      ...(poll.isSuspect ? [suspect, `${suspect} ${namespace}`, `endpoint ${poll.endpoint}`] : []),
    ];
    for (const what of counted) this.#running.add(what, 1);
    const end = (): void => {
      for (const what of counted.splice(0)) this.#running.add(what, -1);
    };
    return { poll, end };
  }
}

const all = "all";
const suspect = "suspect";

/** Named lines that take turns. Empty ones are dropped. */
class Rotation<L extends { readonly length: number }> {
  readonly #lines = new Map<string, L>();
  #order: string[] = [];
  #turn = 0;

  get length(): number {
    return this.#order.length;
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
      else this.#drop(name);
      if (this.#turn >= this.length) this.#turn = 0;
      if (result !== undefined) return result;
    }
    return undefined;
  }

  #drop(name: string): void {
    this.#lines.delete(name);
    this.#order.splice(this.#turn, 1);
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
