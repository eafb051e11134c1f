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
  readonly #entries = new Map<string, Entry>();
  readonly #idsOf = new Map<string, ReadonlySet<string>>();
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
    const ids = new Set(objects.map(idOf));
    for (const id of this.#idsOf.get(user) ?? []) if (!ids.has(id)) this.#drop(user, id);
    for (const object of objects) this.#entryFor(object).followers.set(user, { version: object.version, wake });
    if (ids.size > 0) this.#idsOf.set(user, ids);
    else this.#idsOf.delete(user);
    this.#schedule();
  }

  forget(user: string): void {
    for (const id of this.#idsOf.get(user) ?? []) this.#drop(user, id);
    this.#idsOf.delete(user);
  }

  stop(): void {
    this.#lifetime.abort();
    this.#lifetime = new AbortController();
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#entries.clear();
    this.#idsOf.clear();
  }

  #entryFor(object: PolledObject): Entry {
    const id = idOf(object);
    const { kind, namespace, name } = object;
    const entry = this.#entries.get(id) ?? {
      object: { kind, namespace, name },
      followers: new Map(),
      dueAt: this.#clock.monotonic() + this.#pause(),
    };
    this.#entries.set(id, entry);
    return entry;
  }

  #drop(user: string, id: string): void {
    const entry = this.#entries.get(id);
    entry?.followers.delete(user);
    if (entry?.followers.size === 0) this.#entries.delete(id);
  }

  /** With jitter, so that objects that were first read together do not stay in step. */
  #pause(): number {
    const { everyMs = defaultEveryMs, random = Math.random } = this.#options;
    return everyMs * (0.9 + 0.2 * random());
  }

  #schedule(): void {
    const next = this.#next();
    if (!next || this.#isReading) return;
    const at = Math.max(next.dueAt, this.#lastAt + (this.#options.gapMs ?? defaultGapMs));
    if (this.#timer && this.#timer.at <= at) return;
    this.#timer?.cancel();
    this.#timer = { at, cancel: this.#clock.after(at - this.#clock.monotonic(), () => void this.#readNext()) };
  }

  #next(): Entry | undefined {
    let next: Entry | undefined;
    for (const entry of this.#entries.values()) if (!next || entry.dueAt < next.dueAt) next = entry;
    return next;
  }

  async #readNext(): Promise<void> {
    this.#timer = undefined;
    this.#lastAt = this.#clock.monotonic();
    const entry = this.#next();
    const { signal } = this.#lifetime;
    if (entry && entry.dueAt <= this.#lastAt) {
      this.#isReading = true;
      entry.dueAt = this.#lastAt + this.#pause();
      const version = await this.#versionNow(entry, signal);
      this.#isReading = false;
      if (version !== undefined && !signal.aborted) wakeFollowers(entry, version);
    }
    this.#schedule();
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

function wakeFollowers(entry: Entry, version: string): void {
  for (const [user, follower] of entry.followers) {
    if (follower.version === version) continue;
    // Once: after its next pass, the user reports the version that it has read.
    entry.followers.set(user, { ...follower, version });
    follower.wake();
  }
}

const idOf = ({ kind, namespace, name }: Omit<PolledObject, "version">): string => `${kind}/${namespace}/${name}`;
