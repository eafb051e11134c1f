/**
 * Detects changes of the Secrets and ConfigMaps that Stacks and Workspaces use. A watch would need the permission to read
 * every Secret of the cluster, so each used object is read by name, periodically, and only its metadata: while nothing
 * changes, no secret leaves the API server (docs/adr/0009-secrets-are-polled.md).
 */
import {
  builtin,
  metadataOf,
  silentLogger,
  systemClock,
  type Client,
  type Clock,
  type KubeObject,
  type Logger,
  type Resource,
} from "@pko/kube";

export interface PolledObject {
  readonly kind: "Secret" | "ConfigMap";
  readonly namespace: string;
  readonly name: string;
  /** The version that its user has read: `versionOf`. */
  readonly version: string;
}

export interface ReferencePoller {
  /** Replaces the objects that `user` uses. It is woken when one is no longer in the version that it has read. */
  follow(user: string, used: { readonly objects: readonly PolledObject[]; readonly wake: () => void }): void;
  forget(user: string): void;
  /** Stops all reads and forgets everything. */
  stop(): void;
}

interface ReferencePollerOptions {
  readonly client: Pick<Client, "find">;
  /** How often each object is read, if there are few. */
  readonly everyMs?: number;
  /** The shortest time between two reads, however many objects there are. */
  readonly gapMs?: number;
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly random?: () => number;
}

/** The time that the kubelet may take to update a changed Secret in a volume. */
const defaultEveryMs = 60_000;
const defaultGapMs = 100;

const resources: Readonly<Record<PolledObject["kind"], Resource>> = {
  Secret: metadataOf(builtin.secrets),
  ConfigMap: metadataOf(builtin.configMaps),
};

/** Empty for an object that does not exist. */
export function versionOf(object: Pick<KubeObject, "metadata"> | undefined): string {
  const { uid = "", resourceVersion = "" } = object?.metadata ?? {};
  return object ? `${uid}/${resourceVersion}` : "";
}

interface Follower {
  readonly version: string;
  readonly wake: () => void;
}

interface Entry {
  readonly object: Omit<PolledObject, "version">;
  readonly followers: Map<string, Follower>;
  dueAt: number;
}

export function referencePoller(options: ReferencePollerOptions): ReferencePoller {
  return new Poller(options);
}

class Poller implements ReferencePoller {
  readonly #options: ReferencePollerOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** By namespace, then by `idOf`. The namespace whose turn it is comes first, and so does the entry that was read least recently. */
  readonly #lines = new Map<string, Map<string, Entry>>();
  /** The objects of each user, by `idOf`. */
  readonly #objectsOf = new Map<string, ReadonlyMap<string, PolledObject>>();
  #timer: { readonly at: number; readonly cancel: () => void } | undefined;
  #lifetime = new AbortController();
  #isReading = false;
  #lastAt = -Infinity;

  constructor(options: ReferencePollerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
  }

  follow(
    user: string,
    { objects, wake }: { readonly objects: readonly PolledObject[]; readonly wake: () => void },
  ): void {
    const wanted = new Map(objects.map((object) => [idOf(object), object]));
    for (const [id, object] of this.#objectsOf.get(user) ?? []) if (!wanted.has(id)) this.#drop(user, object);
    for (const object of objects) this.#entryFor(object).followers.set(user, { version: object.version, wake });
    if (wanted.size > 0) this.#objectsOf.set(user, wanted);
    else this.#objectsOf.delete(user);
    const namespaces = new Set(objects.map(({ namespace }) => namespace));
    this.#schedule(firstDueAt([...namespaces].flatMap((namespace) => this.#lines.get(namespace) ?? [])));
  }

  forget(user: string): void {
    for (const object of this.#objectsOf.get(user)?.values() ?? []) this.#drop(user, object);
    this.#objectsOf.delete(user);
  }

  stop(): void {
    this.#lifetime.abort();
    this.#lifetime = new AbortController();
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#lines.clear();
    this.#objectsOf.clear();
  }

  #entryFor(object: PolledObject): Entry {
    const { kind, namespace, name } = object;
    const line = this.#lines.get(namespace) ?? new Map<string, Entry>();
    this.#lines.set(namespace, line);
    const known = line.get(idOf(object));
    if (known) return known;
    const dueAt = this.#clock.monotonic() + this.#pause();
    const entry: Entry = { object: { kind, namespace, name }, followers: new Map(), dueAt };
    line.set(idOf(object), entry);
    return entry;
  }

  #drop(user: string, object: PolledObject): void {
    const line = this.#lines.get(object.namespace);
    const entry = line?.get(idOf(object));
    entry?.followers.delete(user);
    if (entry?.followers.size === 0) line?.delete(idOf(object));
    if (line?.size === 0) this.#lines.delete(object.namespace);
  }

  /** With jitter, so that objects that were first read together do not stay in step. */
  #pause(): number {
    const { everyMs = defaultEveryMs, random = Math.random } = this.#options;
    return everyMs * (0.9 + 0.2 * random());
  }

  /** Unless an earlier read is scheduled. */
  #schedule(dueAt: number): void {
    if (dueAt === Infinity || this.#isReading) return;
    const at = Math.max(dueAt, this.#lastAt + (this.#options.gapMs ?? defaultGapMs));
    if (this.#timer && this.#timer.at <= at) return;
    this.#timer?.cancel();
    this.#timer = { at, cancel: this.#clock.after(at - this.#clock.monotonic(), () => void this.#readNext()) };
  }

  /** Namespaces take turns: one with a thousand objects delays the reads of another by one read. */
  #takeDue(now: number): Entry | undefined {
    for (const [namespace, line] of this.#lines) {
      const entry = headOf(line);
      if (!entry || entry.dueAt > now) continue;
      entry.dueAt = now + this.#pause();
      moveToEnd(line, idOf(entry.object));
      moveToEnd(this.#lines, namespace);
      return entry;
    }
    return undefined;
  }

  async #readNext(): Promise<void> {
    this.#timer = undefined;
    this.#lastAt = this.#clock.monotonic();
    const entry = this.#takeDue(this.#lastAt);
    const { signal } = this.#lifetime;
    if (entry) {
      this.#isReading = true;
      const version = await this.#versionNow(entry, signal);
      this.#isReading = false;
      if (version !== undefined && !signal.aborted) wakeFollowers(entry, version);
    }
    this.#schedule(firstDueAt(this.#lines.values()));
  }

  /** Undefined if it cannot be read: the next read will show it. */
  async #versionNow({ object }: Entry, signal: AbortSignal): Promise<string | undefined> {
    const { kind, namespace, name } = object;
    try {
      return versionOf(await this.#options.client.find(resources[kind], { namespace, name }, { signal }));
    } catch (error) {
      if (!signal.aborted) this.#log.debug("a Secret or ConfigMap could not be read", { kind, namespace, name, error });
      return undefined;
    }
  }
}

const headOf = (line: ReadonlyMap<string, Entry>): Entry | undefined => line.values().next().value;

function firstDueAt(lines: Iterable<ReadonlyMap<string, Entry>>): number {
  let first = Infinity;
  for (const line of lines) first = Math.min(first, headOf(line)?.dueAt ?? Infinity);
  return first;
}

function moveToEnd<V>(map: Map<string, V>, key: string): void {
  const value = map.get(key);
  if (value === undefined) return;
  map.delete(key);
  map.set(key, value);
}

function wakeFollowers(entry: Entry, version: string): void {
  for (const [user, follower] of entry.followers) {
    if (follower.version === version) continue;
    // Once: after its next pass, the user reports the version that it has read.
    entry.followers.set(user, { ...follower, version });
    follower.wake();
  }
}

const idOf = ({ kind, namespace, name }: Omit<PolledObject, "version">): string => `${kind}/${namespace}/${name}`;
