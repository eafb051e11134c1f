/** What happens during the soak test, again and again until it ends. */
import { isComplete, reconcileRequestAnnotation, type StackSpec, type Update } from "@pko/api";
import { builtin, isNotFound } from "@pko/kube";
import { stacks } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import type { Scene } from "./scene.ts";

/** Its agent is never restarted, so that its memory can be measured. */
export const steadyStack = "steady";
const restartedStack = "restarted";

/** How often something happened. */
export interface Counts {
  changes: number;
  commits: number;
  lifecycles: number;
  agentRestarts: number;
  connectionCuts: number;
}

/** A run that is lost is repeated after a pause, and the machine may be busy. */
const timeoutMs = 300_000;
const restartMs = 20_000;
const cutMs = 30_000;
const changesPerCommit = 4;

/** Few finished Updates are kept, so that the stores soon have their final size. */
const shortHistory = { successfulUpdatesHistoryLimit: 1, failedUpdatesHistoryLimit: 1 };

export class Loads {
  readonly counts: Counts = { changes: 0, commits: 0, lifecycles: 0, agentRestarts: 0, connectionCuts: 0 };
  readonly #scene: Scene;
  readonly #failure = new AbortController();
  readonly #end: AbortSignal;
  #isRecovering = false;

  constructor(scene: Scene, end: AbortSignal) {
    this.#scene = scene;
    this.#end = AbortSignal.any([end, this.#failure.signal]);
  }

  /** The Stacks that exist all the time. */
  async prepare(): Promise<void> {
    const { shop } = this.#scene;
    shop.commit("first");
    for (const name of [steadyStack, restartedStack]) await shop.apply(name, shortHistory);
    await this.#until("the first updates to succeed", () => shop.isReady(steadyStack) && shop.isReady(restartedStack));
  }

  /** Resolves at the end, when what was started last has finished. Rejects if something does not happen in time. */
  async run(): Promise<void> {
    const change = (name: string) => this.#repeat((turn) => this.#change(name, turn));
    const loads = [
      change(steadyStack),
      change(restartedStack),
      this.#repeat((turn) => this.#createAndDelete(`passing-${turn}`)),
      this.#every(restartMs, () => this.#restartAgent()),
      this.#every(cutMs, () => this.#cut()),
    ];
    try {
      await Promise.all(loads);
    } catch (error) {
      this.#failure.abort();
      await Promise.allSettled(loads);
      throw error;
    }
  }

  async #repeat(work: (turn: number) => Promise<void>): Promise<void> {
    for (let turn = 1; !this.#end.aborted; turn++) await work(turn);
  }

  async #every(ms: number, work: () => Promise<void> | void): Promise<void> {
    while (await this.#pause(ms)) await work();
  }

  /** Whether the load continues afterwards. */
  async #pause(ms: number): Promise<boolean> {
    const end = new Promise((resolve) => this.#end.addEventListener("abort", resolve, { once: true }));
    if (!this.#end.aborted) await Promise.race([Bun.sleep(ms), end]);
    return !this.#end.aborted;
  }

  /** A new commit, or another configuration. */
  async #change(name: string, turn: number): Promise<void> {
    if (name === steadyStack && turn % changesPerCommit === 0) return await this.#commit(name, turn);
    const { shop } = this.#scene;
    const spec: Partial<StackSpec> = { ...shortHistory, config: { "shop:size": String(turn) } };
    await shop.apply(name, spec);
    const { generation } = (await shop.client.get(stacks, shop.ref(name))).metadata;
    await this.#until(`change ${turn} of ${name}`, () =>
      shop.isReady(name, (last) => last.generation === generation && last.state === "succeeded"),
    );
    this.counts.changes += 1;
    if (name === restartedStack) this.#isRecovering = false;
  }

  /** Every Stack follows the branch. */
  async #commit(name: string, turn: number): Promise<void> {
    const { shop } = this.#scene;
    const commit = shop.commit(`turn ${turn}`);
    const body = { metadata: { annotations: { [reconcileRequestAnnotation]: String(turn) } } };
    await shop.client.patch(stacks, shop.ref(name), { patch: { type: "merge", body } });
    await this.#until(`commit ${turn} to be deployed`, () =>
      shop.isReady(name, ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit),
    );
    this.counts.commits += 1;
  }

  async #createAndDelete(name: string): Promise<void> {
    const { shop } = this.#scene;
    await shop.apply(name, { ...shortHistory, destroyOnFinalize: true });
    await this.#until(`${name} to be created`, () => shop.isReady(name));
    await shop.client.delete(stacks, shop.ref(name));
    await this.#until(`${name} to be deleted`, () => !shop.hasTraces(name));
    this.counts.lifecycles += 1;
  }

  /** In the middle of whatever it does. Not again before the lost run is repeated: on a slow machine, that may take longer than the pause. */
  async #restartAgent(): Promise<void> {
    if (this.#isRecovering) return;
    this.#isRecovering = true;
    // A run that dies between acquiring the lock and the record of its process leaves a lock that a person has to remove (ADR 15).
    await this.#until("the process of the run to be recorded", () => !this.#hasUnrecordedRun());
    const { shop } = this.#scene;
    const pod = shop.ref(`${restartedStack}-workspace-0`);
    await shop.client.delete(builtin.pods, pod).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    this.counts.agentRestarts += 1;
  }

  #hasUnrecordedRun(): boolean {
    const isUnrecorded = (update: Update): boolean =>
      update.spec?.workspaceName === restartedStack &&
      update.status?.podUid !== undefined &&
      update.status.process === undefined &&
      !isComplete(update);
    return this.#scene.shop.update(isUnrecorded) !== undefined;
  }

  #cut(): void {
    this.#scene.cutConnections();
    this.#scene.forgetRequests();
    this.counts.connectionCuts += 1;
  }

  async #until(what: string, isDone: () => boolean): Promise<void> {
    await waitFor(isDone, { timeoutMs, what });
  }
}
