/** One process of the operator, with the controllers that a test needs. Its memory is lost when it ends. */
import {
  builtin,
  eventRecorder,
  metadataOf,
  metricsRegistry,
  reflector,
  systemClock,
  type ApiObject,
  type Client,
  type Clock,
  type Controller,
  type EventNote,
  type EventRecorder,
  type KubeObject,
  type Reflector,
  type ReflectorOptions,
  type Registry,
  type Resource,
} from "@pko/kube";
import {
  approvalIndexers,
  approvals,
  notifications,
  ownedUpdateIndexers,
  podIndexers,
  previewIndexers,
  programs,
  restsUntil,
  receiverIndexers,
  receivers,
  stackIndexers,
  statefulSetIndexers,
  stacks,
  trimRecord,
  updateIndexers,
  updateRecords,
  updates,
  workspaceClasses,
  workspaces,
  type ClassReflectors,
} from "@pko/operator";
import type { Approval, Notification, Program, Receiver, Stack, Update, Workspace } from "@pko/api";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

export interface OperatorOptions {
  readonly namespace: string;
  /** Namespaces that it serves as well. */
  readonly moreNamespaces?: readonly string[];
  /** For the controllers. */
  readonly client: Client;
  /** Fills the stores. By default, `client` does. */
  readonly reading?: Client;
  readonly clock?: Clock;
}

/** What controllers share. */
export interface OperatorParts {
  readonly client: Client;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly metrics: Registry;
  readonly stores: Stores;
}

/** The controllers of an operator, and what stops with it: for example, its connections to agents. */
export interface Wiring {
  readonly controllers: readonly Controller[];
  readonly stop?: () => Promise<unknown>;
}

/** Each store is created when a controller is wired with it: others are not watched. */
export class Stores {
  readonly #client: Client;
  readonly #namespaces: readonly string[];
  readonly #created = new Map<string, Reflector<KubeObject>>();

  constructor(client: Client, namespaces: readonly string[]) {
    this.#client = client;
    this.#namespaces = namespaces;
  }

  get stacks(): Reflector<Stack> {
    return this.#reflector(stacks, { indexers: { ...stackIndexers, ...previewIndexers } });
  }

  get programs(): Reflector<Program> {
    return this.#reflector(programs);
  }

  get workspaces(): Reflector<Workspace> {
    return this.#reflector(workspaces);
  }

  get updates(): Reflector<Update> {
    return this.#reflector(updates, {
      indexers: { ...updateIndexers, ...ownedUpdateIndexers },
      archive: restsUntil,
    });
  }

  get approvals(): Reflector<Approval> {
    return this.#reflector(approvals, { indexers: approvalIndexers });
  }

  get receivers(): Reflector<Receiver> {
    return this.#reflector(receivers, { indexers: receiverIndexers });
  }

  get notifications(): Reflector<Notification> {
    return this.#reflector(notifications);
  }

  get statefulSets(): Reflector<ApiObject<StatefulSet>> {
    return this.#reflector(builtin.statefulSets, { indexers: statefulSetIndexers });
  }

  get pods(): Reflector<ApiObject<Pod>> {
    return this.#reflector(builtin.pods, { indexers: podIndexers });
  }

  /** Of the metadata only. */
  get records(): Reflector<KubeObject> {
    return this.#reflector(metadataOf(updateRecords), { trim: trimRecord });
  }

  get workspaceClasses(): ClassReflectors {
    return {
      classes: this.#reflector(workspaceClasses),
      namespaces: this.#reflector(metadataOf(builtin.namespaces)),
    };
  }

  get all(): Reflector<KubeObject>[] {
    return [...this.#created.values()];
  }

  #reflector<T extends KubeObject>(resource: Resource<T>, options: ReflectorOptions<T> = {}): Reflector<T> {
    const known = this.#created.get(resource.kind);
    if (known) return known as Reflector<T>;
    const created = reflector(this.#client, resource, { ...options, namespaces: this.#namespaces });
    this.#created.set(resource.kind, created);
    return created;
  }
}

const mostPassMs = 1000;

export class Operator implements AsyncDisposable {
  readonly metrics = metricsRegistry();
  /** Events that the controllers reported. They are also written to the API server. */
  readonly events: (EventNote & { readonly about: string })[] = [];
  readonly stores: Stores;
  /** Resolves when every store has been filled. */
  readonly synced: Promise<unknown>;
  readonly #recorder: EventRecorder;
  readonly #wiring: Wiring;
  readonly #stop = new AbortController();
  readonly #ended: Promise<unknown>;

  constructor(options: OperatorOptions, wire: (parts: OperatorParts) => Wiring) {
    const { client, namespace, moreNamespaces = [], reading = client, clock = systemClock } = options;
    this.stores = new Stores(reading, [namespace, ...moreNamespaces]);
    this.#recorder = eventRecorder({ client: reading, component: "test" });
    const events: EventRecorder = {
      record: (object, note) => {
        this.events.push({ ...note, about: object.metadata.name ?? "" });
        this.#recorder.record(object, note);
      },
      flush: () => this.#recorder.flush(),
    };
    this.#wiring = wire({ client, clock, events, metrics: this.metrics, stores: this.stores });
    const { signal } = this.#stop;
    const all = this.stores.all;
    this.synced = Promise.all(all.map((each) => each.waitForSync()));
    this.#ended = Promise.all([
      ...all.map((each) => each.run(signal)),
      ...this.#wiring.controllers.map((each) => each.run({ stop: signal, kill: signal })),
    ]);
  }

  /**
   * Returns when the passes that are running have ended, or after a second, because a test may hold one up. A pass goes on after it has
   * written a status: it records events, and follows what it waits for.
   */
  async passesEnd(): Promise<void> {
    const startedAt = performance.now();
    const passedMs = (): number => performance.now() - startedAt;
    const isRunning = (each: Controller): boolean => each.longestRunningMs() > passedMs();
    while (passedMs() < mostPassMs && this.#wiring.controllers.some(isRunning)) await Bun.sleep(1);
  }

  /** Ends like a process: its connections are closed, and the runs of agents continue. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#wiring.stop?.();
    await this.#ended;
    await this.#recorder.flush();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
