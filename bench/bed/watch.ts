/** Watches the benchmark's namespace, so that waits react to events instead of polling. */
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

export interface WaitLimit {
  readonly timeoutMs: number;
  readonly what: string;
}

/** The expected condition was not met in time. */
export class TimedOut extends Error {
  override readonly name = "TimedOut";

  static after({ what, timeoutMs }: WaitLimit): TimedOut {
    return new TimedOut(`timed out after ${Math.round(timeoutMs / 1000)} s waiting for ${what}`);
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

  /** Calls `listener` after every change. Returns a function that removes it. */
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

  /** Found by owner references, because names depend on the operator. */
  podOf(stack: Stack): KnownPod | undefined {
    const workspace = this.workspaceOf(stack);
    if (!workspace) return undefined;
    const sets = this.#statefulSets.store.list().filter((set) => isOwned(set, workspace));
    return this.pods().find((pod) => isOwned(pod, workspace) || sets.some((set) => isOwned(pod, set)));
  }

  /** The objects created for it, without the pod; owners come before their dependents. */
  dependentsOf(stack: Stack): KubeObject[] {
    const workspace = this.workspaceOf(stack);
    const sets = this.#statefulSets.store.list().filter((set) => workspace && isOwned(set, workspace));
    return [...(workspace ? [workspace] : []), ...sets, ...this.updatesOf(stack)];
  }

  /** The first value that `check` returns, and when. */
  async until<T>(
    check: () => T | undefined | false,
    { timeoutMs, what }: WaitLimit,
  ): Promise<{ value: T; at: number }> {
    const found = Promise.withResolvers<{ value: T; at: number }>();
    const evaluate = (): void => {
      try {
        const value = check();
        if (value !== undefined && value !== false) found.resolve({ value, at: performance.now() });
      } catch (error) {
        found.reject(error);
      }
    };
    const end = this.onChange(evaluate);
    const timer = setTimeout(() => found.reject(TimedOut.after({ what, timeoutMs })), timeoutMs);
    const abort = (): void => found.reject(this.#signal.reason as Error);
    this.#signal.addEventListener("abort", abort);
    try {
      evaluate();
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
