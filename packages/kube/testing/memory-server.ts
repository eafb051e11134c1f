/** An in-memory API server with faults and a manual clock, for the reflector's tests. It has only config maps. */
import type { ConfigMap as ConfigMapFields } from "kubernetes-types/core/v1";

import type { ApiObject } from "../src/client/builtin.ts";
import type { Client, ListOptions, ObjectList, WatchEvent, WatchOptions } from "../src/client/client.ts";
import { sleep } from "../src/clock.ts";
import { ApiError, ConnectionError } from "../src/client/errors.ts";
import { trusted } from "../src/client/requests/json.ts";
import type { ManualClock } from "../src/manual-clock.ts";
import { parseKey, type Key, type KubeObject, type Resource } from "../src/resource.ts";

export type ConfigMap = ApiObject<ConfigMapFields>;

interface Recorded {
  readonly key: Key;
  readonly version: number;
  readonly event: WatchEvent<ConfigMap> & { readonly object: ConfigMap };
}

interface OpenWatch {
  /** Called for each new event and when the connection breaks. */
  wake(): void;
  /** The version of the last event. */
  sent: number;
  /** The version from which the client knows everything, or the last event when the watch began. */
  readonly startedAt: number;
  endsAt: number;
  readonly isBehind: (event: Recorded) => boolean;
  bookmarked: boolean;
  frozen: boolean;
  cut: boolean;
}

// Like a real API server, so long before the end, and none in a watch that does not last longer.
const bookmarkMs = 2000;

type WatchDuration = Pick<WatchOptions, "serverTimeoutSeconds">;

interface Faults {
  down?: boolean;
  /** Lists that fail. */
  list?: (options: Pick<ListOptions, "namespace" | "fieldSelector">) => boolean;
  /** How long a list takes. */
  listMs?: number;
  watch?: (options: WatchDuration) => "end" | undefined;
  /** Events that a watch does not send. */
  drop?: (event: Recorded, options: WatchDuration) => boolean;
  /** Events that new watches do not know yet, as with another API server whose cache is older. */
  behind?: (event: Recorded) => boolean;
}

export class MemoryServer {
  readonly faults: Faults = {};
  readonly startedAt: number;
  /** Of the last list that was read page by page. */
  pages = 0;
  readonly #clock: ManualClock;
  readonly #objects = new Map<Key, ConfigMap>();
  readonly #watches = new Set<OpenWatch>();
  #history: Recorded[] = [];
  #version = 0;
  #forgotten = 0;
  /** Of UIDs, which a restore does not use again. */
  #created = 0;

  constructor(clock: ManualClock) {
    this.#clock = clock;
    this.startedAt = clock.now();
  }

  readonly client: Client = trusted<Client>({
    list: (resource: Resource, options: ListOptions<ConfigMap>) => this.#list(resource, options),
    pages: (resource: Resource, options: ListOptions<ConfigMap>) => this.#pages(resource, options),
    watch: (_: unknown, options: WatchOptions) => this.#watch(options),
  });

  get version(): number {
    return this.#version;
  }

  objects(): ConfigMap[] {
    return [...this.#objects.values()];
  }

  put(key: Key, value?: string): void {
    const type = this.#objects.has(key) ? "MODIFIED" : "ADDED";
    this.#objects.set(key, this.#record(key, type, value));
  }

  remove(key: Key): void {
    if (!this.#objects.has(key)) return;
    this.#record(key, "DELETED");
    this.#objects.delete(key);
  }

  /** Open watches send nothing more and never end: the connection is dead but open. */
  freeze(): void {
    for (const watch of this.#watches) watch.frozen = true;
  }

  cut(): void {
    for (const watch of this.#watches) {
      watch.cut = true;
      watch.wake();
    }
  }

  /** Open watches end without an error, as when the API server stops or reads everything from etcd again. */
  end(): void {
    for (const watch of this.#watches) {
      watch.endsAt = this.#clock.now();
      watch.wake();
    }
  }

  /** Expires all older resource versions. */
  forget(): void {
    this.#forgotten = this.#version;
    this.#history = [];
  }

  /** Resets the versions to smaller ones. */
  restoreBackup(): void {
    this.#version = 5;
    this.#forgotten = 0;
    this.#history = [];
  }

  clearFaults(): void {
    for (const fault of ["down", "list", "listMs", "watch", "drop", "behind"] as const) delete this.faults[fault];
  }

  #record(key: Key, type: "ADDED" | "MODIFIED" | "DELETED", value?: string): ConfigMap {
    const version = ++this.#version;
    const uid = this.#objects.get(key)?.metadata.uid ?? `${key}-${++this.#created}`;
    const object: ConfigMap = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { ...parseKey(key), resourceVersion: String(version), uid, managedFields: [{ manager: "m" }] },
      data: { value: value ?? String(version) },
    };
    this.#history.push({ key, version, event: { type, object } });
    for (const watch of this.#watches) watch.wake();
    return object;
  }

  async #list({ view }: Resource, options: ListOptions<ConfigMap>): Promise<ObjectList<KubeObject>> {
    await sleep(this.#clock, this.faults.listMs ?? 1, options.signal);
    this.#failIfDown("list");
    if (this.faults.list?.(options)) throw new ApiError("list", { status: 500, reason: "InternalError", message: "" });
    const items = this.objects()
      .filter((object) => isIn(options, object) && isNamed(options, object))
      .map((object) => (view === "metadata" ? metadataOnly(object) : (options.transform?.(object) ?? object)));
    return { resourceVersion: String(this.#version), items };
  }

  async *#pages(resource: Resource, options: ListOptions<ConfigMap>): AsyncGenerator<ObjectList<KubeObject>> {
    const list = await this.#list(resource, options);
    const size = options.pageSize || list.items.length || 1;
    this.pages = 0;
    for (let from = 0; from < Math.max(1, list.items.length); from += size) {
      this.pages++;
      yield { ...list, items: list.items.slice(from, from + size) };
    }
  }

  async *#watch(options: WatchOptions): AsyncGenerator<WatchEvent<ConfigMap>> {
    this.#failIfDown("watch");
    if (this.faults.watch?.(options) === "end") return;
    if (Number(options.resourceVersion) < this.#forgotten) {
      throw new ApiError("watch", { status: 410, reason: "Expired", message: "" });
    }
    const durationMs = (options.serverTimeoutSeconds ?? 60) * 1000;
    const watch: OpenWatch = {
      wake: () => {},
      sent: Number(options.resourceVersion),
      startedAt: Math.max(Number(options.resourceVersion), this.#history.at(-1)?.version ?? 0),
      isBehind: this.faults.behind ?? (() => false),
      endsAt: this.#clock.now() + durationMs,
      bookmarked: durationMs <= bookmarkMs,
      frozen: false,
      cut: false,
    };
    this.#watches.add(watch);
    try {
      yield* this.#events(watch, options);
    } finally {
      this.#watches.delete(watch);
    }
  }

  async *#events(watch: OpenWatch, options: WatchOptions): AsyncGenerator<WatchEvent<ConfigMap>> {
    for (;;) {
      options.signal?.throwIfAborted();
      if (watch.cut) throw new ConnectionError("watch", { code: "ECONNRESET" });
      const left = watch.endsAt - this.#clock.now();
      const next = this.#history.find((event) => event.version > watch.sent && !watch.isBehind(event));
      if (watch.frozen) {
        await this.#pause(watch, 1000, options.signal);
      } else if (next) {
        watch.sent = next.version;
        if (isIn(options, next.event.object) && !this.faults.drop?.(next, options)) yield next.event;
      } else if (left <= 0) {
        return;
      } else if (left <= bookmarkMs && !watch.bookmarked) {
        watch.bookmarked = true;
        const version = this.#history.some(watch.isBehind) ? watch.sent : this.#version;
        // Like a real API server, which sends none for what the client knows already.
        if (version > watch.startedAt) yield { type: "BOOKMARK", resourceVersion: String(version) };
      } else {
        await this.#pause(watch, watch.bookmarked ? left : left - bookmarkMs, options.signal);
      }
    }
  }

  async #pause(watch: OpenWatch, ms: number, signal?: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const wake = (): void => woken.abort();
    watch.wake = wake;
    signal?.addEventListener("abort", wake, { once: true });
    await sleep(this.#clock, ms, woken.signal);
    signal?.removeEventListener("abort", wake);
  }

  #failIfDown(call: string): void {
    if (this.faults.down) throw new ConnectionError(call, { code: "ECONNREFUSED" });
  }
}

export function memoryServer(clock: ManualClock): MemoryServer {
  return new MemoryServer(clock);
}

function metadataOnly({ apiVersion, kind, metadata }: ConfigMap): KubeObject {
  return { apiVersion, kind, metadata };
}

function isIn({ namespace }: { readonly namespace?: string }, object: ConfigMap): boolean {
  return namespace === undefined || object.metadata.namespace === namespace;
}

function isNamed({ fieldSelector }: Pick<ListOptions, "fieldSelector">, { metadata }: ConfigMap): boolean {
  return fieldSelector === undefined || fieldSelector === `metadata.name=${metadata.name}`;
}
