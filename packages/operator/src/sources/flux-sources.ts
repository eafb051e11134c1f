/**
 * Flux's sources, and other kinds of their shape: objects with an artifact in their status. A kind is watched from the
 * first time that a Stack names it until none does any more, and only while the cluster serves it; otherwise it is looked
 * for now and then.
 */
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
import { assertNever } from "@pko/rpc";

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

export interface FluxSources {
  /** How the source stands for this Stack, which follows it from now on. */
  look(key: Key, follow: { readonly namespace: string; readonly ref: FluxRef; readonly dir: string }): SourceView;
  forget(key: Key): void;
  stop(): void;
}

interface FluxSourcesOptions {
  readonly client: Client;
  readonly wake: (key: Key) => void;
  /** All of them when absent. */
  readonly namespaces?: readonly string[];
  readonly clock?: Clock;
  readonly log?: Logger;
}

const servedCheckMs = 30_000;
/** For how long what Flux makes of a changed spec is waited for; then the artifact of the former spec is better than none. */
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
  readonly followers: Map<Key, Key>;
  /** Objects whose spec has changed: since when that generation has been seen. */
  readonly changed: Map<Key, { readonly generation: number | undefined; readonly since: number }>;
  /** Ends with its last follower. */
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

  look(
    key: Key,
    { namespace, ref, dir }: { readonly namespace: string; readonly ref: FluxRef; readonly dir: string },
  ): SourceView {
    const id = `${ref.apiVersion}/${ref.kind}`;
    const object = refKey({ namespace, name: ref.name });
    const kind = this.#kinds.get(id) ?? this.#track(id, ref);
    kind.followers.set(key, object);
    this.#leave(key, id);
    switch (kind.tracked.state) {
      case "starting":
        return { kind: "pending", what: `the first look at ${ref.kind} ${ref.name}` };
      case "absent":
        return unavailable("notFound", kind.tracked.message);
      case "watched":
        return this.#view(kind, { object, ref, dir }, kind.tracked.reflector.store.get(object));
      default:
        return assertNever(kind.tracked);
    }
  }

  #view(
    kind: Kind,
    { object, ref, dir }: { readonly object: Key; readonly ref: FluxRef; readonly dir: string },
    found: FluxObject | undefined,
  ): SourceView {
    const view = fluxView(found, { ref, dir, isOverdue: false });
    if (view.kind !== "pending") {
      kind.changed.delete(object);
      return view;
    }
    const generation = found?.metadata.generation;
    const change = kind.changed.get(object);
    if (change && change.generation === generation) {
      return fluxView(found, { ref, dir, isOverdue: this.#clock.monotonic() - change.since >= newSpecMs });
    }
    kind.changed.set(object, { generation, since: this.#clock.monotonic() });
    const { signal } = kind.lifetime;
    this.#clock.after(newSpecMs, () => {
      if (!signal.aborted) this.#wake(kind, object);
    });
    return view;
  }

  forget(key: Key): void {
    this.#leave(key);
  }

  stop(): void {
    for (const kind of this.#kinds.values()) kind.lifetime.abort();
    this.#kinds.clear();
  }

  /** All kinds but one. */
  #leave(key: Key, but?: string): void {
    for (const [id, kind] of this.#kinds) {
      if (id === but || !kind.followers.delete(key) || kind.followers.size > 0) continue;
      kind.lifetime.abort();
      this.#kinds.delete(id);
    }
  }

  #track(id: string, ref: FluxRef): Kind {
    const lifetime = new AbortController();
    const kind: Kind = { tracked: { state: "starting" }, followers: new Map(), changed: new Map(), lifetime };
    this.#kinds.set(id, kind);
    void this.#begin(kind, ref);
    return kind;
  }

  async #begin(kind: Kind, ref: FluxRef): Promise<void> {
    const { client, namespaces } = this.#options;
    const lifetime = kind.lifetime.signal;
    const watching = new AbortController();
    const signal = AbortSignal.any([lifetime, watching.signal]);
    const giveUp = (error: unknown): void => {
      if (signal.aborted) return;
      watching.abort();
      this.#change(kind, { state: "absent", message: explain(error, ref) });
      this.#clock.after(servedCheckMs, () => {
        if (!lifetime.aborted) void this.#begin(kind, ref);
      });
    };
    try {
      const names = resource<FluxObject>(await this.#served(ref, signal));
      const [namespace] = namespaces ?? [];
      // Whether it may be read: a watch alone would go on asking.
      await client.list(names, { pageSize: 1, signal, ...(namespace !== undefined && { namespace }) });
      const watched = reflector(client, names, {
        ...(namespaces && { namespaces }),
        clock: this.#clock,
        onError: (error, what) => {
          this.#log.warn("the watch of a source failed", { error, what });
          // This version of the kind is no longer served.
          if (isNotFound(error)) giveUp(error);
        },
      });
      watched.store.subscribe(({ key }) => this.#wake(kind, key));
      void watched.run(signal);
      await watched.waitForSync(signal);
      this.#change(kind, { state: "watched", reflector: watched });
    } catch (error) {
      giveUp(error);
    }
  }

  /** In the version that was named or, when the cluster has left that one behind, in the one that it prefers. */
  async #served({ apiVersion, kind }: FluxRef, signal: AbortSignal): Promise<ResourceNames> {
    const [group = ""] = apiVersion.includes("/") ? apiVersion.split("/") : [];
    const served = await this.#options.client.discover({ group, kind }, { signal });
    const names = served.find((each) => each.apiVersion === apiVersion) ?? served[0];
    if (!names?.namespaced) throw new NotServed();
    return names;
  }

  #change(kind: Kind, tracked: Tracked): void {
    const isNews = JSON.stringify(stateOf(kind.tracked)) !== JSON.stringify(stateOf(tracked));
    kind.tracked = tracked;
    if (isNews) for (const key of kind.followers.keys()) this.#options.wake(key);
  }

  #wake(kind: Kind, object: Key): void {
    for (const [key, followed] of kind.followers) if (followed === object) this.#options.wake(key);
  }
}

const stateOf = (tracked: Tracked): object => (tracked.state === "watched" ? { state: "watched" } : tracked);

class NotServed extends Error {}

function explain(error: unknown, ref: FluxRef): string {
  const name = `${ref.kind} of ${ref.apiVersion}`;
  if (error instanceof NotServed || isNotFound(error)) {
    return `the cluster serves no ${name}: install Flux, or correct the source's kind and version`;
  }
  if (isForbidden(error)) return `the operator may not read ${name}: extend its role`;
  return `${name} cannot be read for now`;
}

interface FluxQuestion {
  readonly ref: FluxRef;
  readonly dir: string;
  /** Whether Flux has had its time to look at the present spec. */
  readonly isOverdue: boolean;
}

/**
 * An artifact that is there is used, as Flux's own controllers use it: a fetch that failed, or one that is under way, takes
 * nothing away from what was fetched before.
 */
export function fluxView(object: FluxObject | undefined, { ref, dir, isOverdue }: FluxQuestion): SourceView {
  const name = `${ref.kind} ${ref.name}`;
  if (!object) return unavailable("notFound", `there is no ${name}`);
  const { url, digest, revision } = object.status?.artifact ?? {};
  if (!url || !digest) return unavailable("notReady", withoutArtifact(object, name));
  if (!isSettled(object) && !isOverdue)
    return { kind: "pending", what: `Flux, which looks at the new spec of ${name}` };
  const ready = readyOf(object);
  return {
    kind: "ready",
    ...(ready?.status === "False" && { warning: `${notReady(name, ready)} (what was fetched before is used)` }),
    revision: revision || digest,
    digest,
    aliases: [digest],
    spec: { flux: { url, digest, ...(dir && { dir }) } },
  };
}

function withoutArtifact(object: FluxObject, name: string): string {
  const ready = readyOf(object);
  if (ready?.status === "False") return notReady(name, ready);
  return object.status?.artifact
    ? `${name} has an artifact without an address or a digest`
    : `${name} has no artifact yet`;
}

const notReady = (name: string, { message }: { readonly message?: string }): string =>
  `${name} is not ready: ${message ?? "it does not say why"}`;

const readyOf = ({ status }: FluxObject) => status?.conditions?.find(({ type }) => type === "Ready");

/**
 * Whether all has been done for the present spec that will be: it was looked at, with success or not, or nobody looks.
 * Some kinds say in the condition alone of which spec they speak, or nowhere.
 */
function isSettled(object: FluxObject): boolean {
  const { generation } = object.metadata;
  const ready = readyOf(object);
  const seen = [object.status?.observedGeneration, ready?.observedGeneration];
  if (object.spec?.suspend === true || seen.every((each) => each === undefined)) return true;
  return seen[0] === generation || (ready?.status !== "Unknown" && seen[1] === generation);
}
