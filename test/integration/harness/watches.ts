/** What a scene sees of its namespace, from one watch of each kind: a request per change costs far less than one per poll. */
import {
  isTransient,
  keyOf,
  reflector,
  type Client,
  type KubeObject,
  type ObjectRef,
  type Resource,
  type Store,
} from "@pko/kube";

interface Place {
  /** Has all rights. */
  readonly client: Client;
  readonly namespace: string;
}

interface Watch {
  readonly store: Store<KubeObject>;
  readonly ended: Promise<void>;
}

/** A watch that is late or broken delays a test by this time at most. */
const longestSilenceMs = 1000;

export class Watches implements AsyncDisposable {
  readonly #place: Place;
  readonly #watches = new Map<string, Watch>();
  readonly #stop = new AbortController();

  constructor(place: Place) {
    this.#place = place;
  }

  /** The watch starts with the first call. */
  store<T extends KubeObject>(kind: Resource<T>): Store<T> {
    const known = this.#watches.get(kind.plural);
    if (known) return known.store as Store<T>;
    const { client, namespace } = this.#place;
    const started = reflector(client, kind, { namespaces: [namespace] });
    this.#watches.set(kind.plural, { store: started.store, ended: started.run(this.#stop.signal) });
    return started.store;
  }

  /** The object as it is now, and then each later version of it, until the time is up. */
  async *versions<T extends KubeObject>(kind: Resource<T>, name: string, timeoutMs: number): AsyncGenerator<T> {
    const ref = { namespace: this.#place.namespace, name };
    using changes = new Changes(this.store(kind), ref);
    const deadline = performance.now() + timeoutMs;
    while (performance.now() < deadline) {
      const current = await this.#find(kind, ref);
      if (current) {
        yield current;
        yield* changes.after(current);
      }
      // Without the object, no version of the store is known to be newer, so the next change is read from the API server.
      else await changes.next();
    }
  }

  /** Undefined also while the API server does not respond. */
  async #find<T extends KubeObject>(kind: Resource<T>, ref: ObjectRef): Promise<T | undefined> {
    try {
      return await this.#place.client.find(kind, ref);
    } catch (error) {
      if (isTransient(error)) return undefined;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(Array.from(this.#watches.values(), ({ ended }) => ended));
  }
}

/** The changes of one object in a store. */
class Changes<T extends KubeObject> implements Disposable {
  readonly #waiting: (T | "deleted")[] = [];
  readonly #unsubscribe: () => void;
  #arrived = Promise.withResolvers<void>();

  constructor(store: Store<T>, ref: Required<ObjectRef>) {
    const wanted = keyOf({ metadata: ref });
    this.#unsubscribe = store.subscribe(({ key, after }) => {
      if (key !== wanted) return;
      this.#waiting.push(after ?? "deleted");
      this.#arrived.resolve();
    });
  }

  /** Undefined if there is none for a while. */
  async next(): Promise<T | "deleted" | undefined> {
    if (this.#waiting.length === 0) {
      this.#arrived = Promise.withResolvers();
      await Promise.race([this.#arrived.promise, Bun.sleep(longestSilenceMs)]);
    }
    return this.#waiting.shift();
  }

  /** Every version that is newer than this one, until the object is deleted or does not change for a while. */
  async *after(current: T): AsyncGenerator<T> {
    const known = versionOf(current);
    for (let change = await this.next(); change !== undefined && change !== "deleted"; change = await this.next()) {
      if (versionOf(change) > known) yield change;
    }
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
  }
}

/** Versions of objects of one kind are numbers that grow. */
const versionOf = ({ metadata }: KubeObject): bigint => BigInt(metadata.resourceVersion ?? 0);
