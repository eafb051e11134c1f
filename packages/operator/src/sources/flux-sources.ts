/**
 * Flux sources, and other kinds with an artifact in their status. A kind is watched while at least one Stack references it and
 * the cluster serves it; if the cluster does not serve it, that is checked periodically.
 */
import { isDeepStrictEqual } from "node:util";

import { missingSource } from "@pko/api";
import {
  isForbidden,
  isNotFound,
  refKey,
  reflector,
  resource,
  silentLogger,
  systemClock,
  type Client,
  type Clock,
  type Key,
  type KubeObject,
  type Logger,
  type Reflector,
  type ResourceNames,
} from "@pko/kube";

import { pauseMs } from "../shared/pauses.ts";
import { unavailable, type SourceView } from "./source-view.ts";

interface FluxRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

export interface FluxObject extends KubeObject {
  readonly spec?: { readonly suspend?: boolean };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly artifact?: { readonly url?: string; readonly digest?: string; readonly revision?: string };
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message?: string;
      readonly observedGeneration?: number;
    }[];
  };
}

export interface FluxFollow {
  readonly namespace: string;
  readonly ref: FluxRef;
  readonly dir: string;
}

export interface FluxSources {
  /** The current state of the source: pending while no Stack follows its kind. */
  latest(wanted: FluxFollow): SourceView;
  /** The Stack follows the source from now on. It is woken when the state differs from `seen`, which it has read. */
  follow(key: Key, wanted: FluxFollow, seen: SourceView): void;
  forget(key: Key): void;
  stop(): void;
}

interface FluxSourcesOptions {
  readonly client: Client;
  readonly wake: (key: Key) => void;
  /** All namespaces when absent. */
  readonly namespaces?: readonly string[];
  readonly clock?: Clock;
  readonly log?: Logger;
}

const servedCheckMs = { least: 30_000, most: 5 * 60_000 };
/** How long to wait until Flux has processed a changed spec; after that, the artifact of the former spec is used. */
const newSpecMs = 60_000;

export function fluxSources(options: FluxSourcesOptions): FluxSources {
  return new Sources(options);
}

type Tracked =
  | { readonly state: "starting" }
  | { readonly state: "absent"; readonly message: string }
  | { readonly state: "watched"; readonly reflector: Reflector<FluxObject> };

interface Kind {
  tracked: Tracked;
  /** On the monotonic clock; undefined while it is watched. */
  absentSince?: number | undefined;
  readonly followers: Map<Key, Key>;
  /** Objects whose spec has changed, with the time at which the new generation was first observed. */
  readonly changed: Map<Key, { readonly generation: number | undefined; readonly since: number }>;
  /** Aborted when its last follower leaves. */
  readonly lifetime: AbortController;
}

class Sources implements FluxSources {
  readonly #options: FluxSourcesOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #kinds = new Map<string, Kind>();

  constructor(options: FluxSourcesOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
  }

  latest(wanted: FluxFollow): SourceView {
    const kind = this.#kinds.get(kindId(wanted.ref));
    return kind ? this.#view(kind, wanted) : firstRead(wanted.ref);
  }

  follow(key: Key, wanted: FluxFollow, seen: SourceView): void {
    const id = kindId(wanted.ref);
    const kind = this.#kinds.get(id) ?? this.#track(id, wanted.ref);
    kind.followers.set(key, objectKey(wanted));
    this.#unfollow(key, id);
    this.#timeNewSpec(kind, wanted);
    // The object may have changed between the two calls.
    if (!isDeepStrictEqual(this.#view(kind, wanted), seen)) this.#options.wake(key);
  }

  #view({ tracked, changed }: Kind, wanted: FluxFollow): SourceView {
    const { ref, dir } = wanted;
    switch (tracked.state) {
      case "starting":
        return firstRead(ref);
      case "absent":
        return unavailable("notFound", tracked.message);
      case "watched": {
        const found = tracked.reflector.store.get(objectKey(wanted));
        const change = changed.get(objectKey(wanted));
        const isOverdue =
          change !== undefined &&
          change.generation === found?.metadata.generation &&
          this.#clock.monotonic() - change.since >= newSpecMs;
        return fluxView(found, { ref, dir, isOverdue });
      }
    }
  }

  /** Wakes the followers of an object when Flux has had enough time to process its new spec. */
  #timeNewSpec(kind: Kind, wanted: FluxFollow): void {
    if (kind.tracked.state !== "watched") return;
    const object = objectKey(wanted);
    const found = kind.tracked.reflector.store.get(object);
    if (fluxView(found, { ...wanted, isOverdue: false }).kind !== "pending") {
      kind.changed.delete(object);
      return;
    }
    const generation = found?.metadata.generation;
    if (kind.changed.get(object)?.generation === generation) return;
    kind.changed.set(object, { generation, since: this.#clock.monotonic() });
    const { signal } = kind.lifetime;
    this.#clock.after(newSpecMs, () => {
      if (!signal.aborted) this.#wake(kind, object);
    });
  }

  forget(key: Key): void {
    this.#unfollow(key);
  }

  stop(): void {
    for (const kind of this.#kinds.values()) kind.lifetime.abort();
    this.#kinds.clear();
  }

  /** Every kind except one. */
  #unfollow(key: Key, except?: string): void {
    for (const [id, kind] of this.#kinds) {
      if (id === except || !kind.followers.delete(key) || kind.followers.size > 0) continue;
      kind.lifetime.abort();
      this.#kinds.delete(id);
    }
  }

  #track(id: string, ref: FluxRef): Kind {
    const lifetime = new AbortController();
    const kind: Kind = { tracked: { state: "starting" }, followers: new Map(), changed: new Map(), lifetime };
    this.#kinds.set(id, kind);
    void this.#startWatch(kind, ref);
    return kind;
  }

  async #startWatch(kind: Kind, ref: FluxRef): Promise<void> {
    const { client, namespaces } = this.#options;
    const lifetime = kind.lifetime.signal;
    const watching = new AbortController();
    const signal = AbortSignal.any([lifetime, watching.signal]);
    const giveUp = (error: unknown): void => {
      if (signal.aborted) return;
      watching.abort();
      this.#change(kind, { state: "absent", message: explain(error, ref) });
      this.#clock.after(this.#pauseMs(kind, ref), () => {
        if (!lifetime.aborted) void this.#startWatch(kind, ref);
      });
    };
    try {
      const names = resource<FluxObject>(await this.#served(ref, signal));
      const [namespace] = namespaces ?? [];
      const first = client.pages(names, { pageSize: 1, signal, ...(namespace !== undefined && { namespace }) });
      // Checks the permission: a watch alone would retry forever. One page of one object shows it.
      await first[Symbol.asyncIterator]().next();
      const watched = reflector(client, names, {
        ...(namespaces && { namespaces }),
        clock: this.#clock,
        onError: (error, what) => {
          this.#log.warn("watching a source failed", { error, what });
          // This version of the kind is no longer served, or the operator may not read it in another namespace.
          if (isNotFound(error) || (isForbidden(error) && kind.tracked.state !== "watched")) giveUp(error);
        },
      });
      watched.store.subscribe(({ key }) => this.#wake(kind, key));
      void watched.run(signal);
      await watched.waitForSync(signal);
      kind.absentSince = undefined;
      this.#change(kind, { state: "watched", reflector: watched });
    } catch (error) {
      giveUp(error);
    }
  }

  /** Until the next check of an absent kind. */
  #pauseMs(kind: Kind, ref: FluxRef): number {
    const now = this.#clock.monotonic();
    kind.absentSince ??= now;
    return pauseMs({ sinceMs: now - kind.absentSince, id: kindId(ref) }, servedCheckMs);
  }

  /** In the version of the reference or, if the cluster no longer serves that one, in the preferred version. */
  async #served({ apiVersion, kind }: FluxRef, signal: AbortSignal): Promise<ResourceNames> {
    const [group = ""] = apiVersion.includes("/") ? apiVersion.split("/") : [];
    const served = await this.#options.client.discover({ group, kind }, { signal });
    const names = served.find((each) => each.apiVersion === apiVersion) ?? served[0];
    if (!names?.namespaced) throw new NotServed();
    return names;
  }

  #change(kind: Kind, tracked: Tracked): void {
    const hasChanged = JSON.stringify(comparable(kind.tracked)) !== JSON.stringify(comparable(tracked));
    kind.tracked = tracked;
    if (hasChanged) for (const key of kind.followers.keys()) this.#options.wake(key);
  }

  #wake(kind: Kind, object: Key): void {
    for (const [key, followed] of kind.followers) if (followed === object) this.#options.wake(key);
  }
}

const kindId = ({ apiVersion, kind }: FluxRef): string => `${apiVersion}/${kind}`;
const objectKey = ({ namespace, ref }: FluxFollow): Key => refKey({ namespace, name: ref.name });
const firstRead = ({ kind, name }: FluxRef): SourceView => ({
  kind: "pending",
  what: `the first read of ${kind} ${name}`,
});

const comparable = (tracked: Tracked): object => (tracked.state === "watched" ? { state: "watched" } : tracked);

class NotServed extends Error {}

function explain(error: unknown, ref: FluxRef): string {
  const name = `${ref.kind} of ${ref.apiVersion}`;
  if (error instanceof NotServed || isNotFound(error)) {
    return `the cluster serves no ${name}: install Flux, or correct the source's kind and version`;
  }
  if (isForbidden(error)) return `the operator may not read ${name}: extend its role`;
  return `${name} cannot be read at the moment`;
}

interface FluxViewOptions {
  readonly ref: FluxRef;
  readonly dir: string;
  /** Flux has had enough time to process the current spec. */
  readonly isOverdue: boolean;
}

/**
 * An existing artifact is used, as Flux's own controllers do: a fetch that failed or is still running does not invalidate what
 * was fetched before.
 */
export function fluxView(object: FluxObject | undefined, { ref, dir, isOverdue }: FluxViewOptions): SourceView {
  const name = `${ref.kind} ${ref.name}`;
  if (!object) return unavailable("notFound", missingSource(name));
  const { url, digest, revision } = object.status?.artifact ?? {};
  if (!url || !digest) return unavailable("notReady", withoutArtifact(object, name));
  if (!isSettled(object) && !isOverdue) return { kind: "pending", what: `Flux to process the new spec of ${name}` };
  const ready = readyCondition(object);
  return {
    kind: "ready",
    ...(ready?.status === "False" && { warning: `${notReady(name, ready)} (the last artifact is used)` }),
    revision: revision || digest,
    digest,
    aliases: [digest],
    spec: { flux: { url, digest, ...(dir && { dir }) } },
  };
}

function withoutArtifact(object: FluxObject, name: string): string {
  const ready = readyCondition(object);
  if (ready?.status === "False") return notReady(name, ready);
  return object.status?.artifact
    ? `${name} has an artifact without an address or a digest`
    : `${name} has no artifact yet`;
}

const notReady = (name: string, { message }: { readonly message?: string }): string =>
  `${name} is not ready: ${message ?? "it reports no reason"}`;

const readyCondition = ({ status }: FluxObject) => status?.conditions?.find(({ type }) => type === "Ready");

/**
 * Whether the current spec was processed, with success or not, or will not be because the object is suspended. Some kinds
 * report the observed generation only in the condition, or not at all.
 */
function isSettled(object: FluxObject): boolean {
  const { generation } = object.metadata;
  const ready = readyCondition(object);
  const seen = [object.status?.observedGeneration, ready?.observedGeneration];
  if (object.spec?.suspend === true || seen.every((each) => each === undefined)) return true;
  return seen[0] === generation || (ready?.status !== "Unknown" && seen[1] === generation);
}
