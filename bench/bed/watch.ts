/** Everything of the benchmark's namespace as it changes: waits wake with the event, not with a poll. */
import { reflector, type Client, type KubeObject, type Reflector, type Resource } from "@pko/kube";

import {
  ownerUids,
  pods,
  stacks,
  statefulSets,
  updates,
  workspaces,
  type KnownPod,
  type KnownStatefulSet,
  type Stack,
  type Update,
  type Workspace,
} from "./kinds.ts";

export interface Patience {
  readonly timeoutMs: number;
  readonly what: string;
}

/** What was waited for did not come. */
export class Missed extends Error {
  override readonly name = "Missed";

  static after({ what, timeoutMs }: Patience): Missed {
    return new Missed(`${what} did not come within ${Math.round(timeoutMs / 1000)} s`);
  }
}

export class Watch {
  readonly #reflectors: readonly Reflector<KubeObject>[];
  readonly #stacks: Reflector<Stack>;
  readonly #workspaces: Reflector<Workspace>;
  readonly #updates: Reflector<Update>;
  readonly #statefulSets: Reflector<KnownStatefulSet>;
  readonly #pods: Reflector<KnownPod>;
  readonly #listeners = new Set<() => void>();
  readonly #namespace: string;
  readonly #signal: AbortSignal;

  constructor(client: Client, namespace: string, signal: AbortSignal) {
    const of = <T extends KubeObject>(kind: Resource<T>): Reflector<T> =>
      reflector(client, kind, { namespaces: [namespace] });
    this.#namespace = namespace;
    this.#signal = signal;
    this.#stacks = of(stacks);
    this.#workspaces = of(workspaces);
    this.#updates = of(updates);
    this.#statefulSets = of(statefulSets);
    this.#pods = of(pods);
    this.#reflectors = [this.#stacks, this.#workspaces, this.#updates, this.#statefulSets, this.#pods];
  }

  async start(): Promise<void> {
    for (const one of this.#reflectors) {
      one.store.subscribe(() => {
        for (const listener of this.#listeners) listener();
      });
      void one.run(this.#signal);
      await one.waitForSync(this.#signal);
    }
  }

  /** Called after every change of anything. Returns what ends it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stack(name: string): Stack | undefined {
    return this.#stacks.store.get(`${this.#namespace}/${name}`);
  }

  stacks(): Stack[] {
    return this.#stacks.store.list();
  }

  workspaces(): Workspace[] {
    return this.#workspaces.store.list();
  }

  pods(): KnownPod[] {
    return this.#pods.store.list();
  }

  updates(): Update[] {
    return this.#updates.store.list();
  }

  updatesOf(stack: Stack): Update[] {
    return this.updates().filter((update) => isOwned(update, stack));
  }

  workspaceOf(stack: Stack): Workspace | undefined {
    return this.workspaces().find((workspace) => isOwned(workspace, stack));
  }

  /** By who owns whom: names are the operator's own. */
  podOf(stack: Stack): KnownPod | undefined {
    const workspace = this.workspaceOf(stack);
    if (!workspace) return undefined;
    const sets = this.#statefulSets.store.list().filter((set) => isOwned(set, workspace));
    return this.pods().find((pod) => isOwned(pod, workspace) || sets.some((set) => isOwned(pod, set)));
  }

  /** What was made for it, owners before what they own, without the pod. */
  keptFor(stack: Stack): KubeObject[] {
    const workspace = this.workspaceOf(stack);
    const sets = this.#statefulSets.store.list().filter((set) => workspace && isOwned(set, workspace));
    return [...(workspace ? [workspace] : []), ...sets, ...this.updatesOf(stack)];
  }

  /** The first value that `look` gives, and when it was there. */
  async until<T>(look: () => T | undefined | false, { timeoutMs, what }: Patience): Promise<{ value: T; at: number }> {
    const found = Promise.withResolvers<{ value: T; at: number }>();
    const tryIt = (): void => {
      try {
        const value = look();
        if (value !== undefined && value !== false) found.resolve({ value, at: performance.now() });
      } catch (error) {
        found.reject(error);
      }
    };
    const end = this.onChange(tryIt);
    const timer = setTimeout(() => found.reject(Missed.after({ what, timeoutMs })), timeoutMs);
    const abort = (): void => found.reject(this.#signal.reason as Error);
    this.#signal.addEventListener("abort", abort);
    try {
      tryIt();
      this.#signal.throwIfAborted();
      return await found.promise;
    } finally {
      end();
      clearTimeout(timer);
      this.#signal.removeEventListener("abort", abort);
    }
  }
}

const isOwned = (object: KubeObject, owner: KubeObject): boolean =>
  ownerUids(object).includes(owner.metadata.uid ?? "");
