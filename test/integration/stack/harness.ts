/** A Stack controller on the tests' API server. A simulator replaces the other controllers. */
import { stackKind, programKind, type Program, type Stack, type StackSpec } from "@pko/api";
import {
  eventRecorder,
  metricsRegistry,
  reflector,
  systemClock,
  type Client,
  type Clock,
  type Controller,
  type Registry,
} from "@pko/kube";
import {
  approvalIndexers,
  approvals,
  ownedUpdateIndexers,
  programs,
  stackController,
  stackIndexers,
  stacks,
  updates,
  workspaces,
  type StackControllerOptions,
} from "@pko/operator";
import { checkStatus, testNamespace, waitFor, type TestNamespace } from "@pko/testkit";

import { OperatorRights } from "../../rights/operator-rights.ts";
import { apiServerWithApi, testTimeoutMs } from "../api/install.ts";
import { policyInForce } from "../approvals/decide.ts";
import { Simulator } from "./simulator.ts";

export { testTimeoutMs };

/** The system clock, moved forward by a test. */
class JumpingClock implements Clock {
  #ahead = 0;
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void; cancel: () => void }>();

  now(): number {
    return systemClock.now() + this.#ahead;
  }

  monotonic(): number {
    return systemClock.monotonic() + this.#ahead;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.monotonic() + ms, callback, cancel: (): void => undefined };
    this.#timers.add(timer);
    this.#arm(timer);
    return () => {
      this.#timers.delete(timer);
      timer.cancel();
    };
  }

  jump(ms: number): void {
    this.#ahead += ms;
    for (const timer of this.#timers) this.#arm(timer);
  }

  #arm(timer: { readonly at: number; readonly callback: () => void; cancel: () => void }): void {
    timer.cancel();
    timer.cancel = systemClock.after(Math.max(0, timer.at - this.monotonic()), () => {
      this.#timers.delete(timer);
      timer.callback();
    });
  }
}

type OperatorOptions = Partial<Pick<StackControllerOptions, "git" | "listRefs" | "client" | "log" | "approvalPolicy">>;

/** One process of the operator. Its memory is lost when it ends. */
export class Operator implements AsyncDisposable {
  readonly controller: Controller;
  readonly metrics: Registry = metricsRegistry();
  readonly synced: Promise<unknown>;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;

  constructor(place: { client: Client; name: string }, clock: Clock, options: OperatorOptions = {}) {
    const { client, name: namespace } = place;
    const scope = { namespaces: [namespace] };
    const reflectors = {
      stacks: reflector(client, stacks, { ...scope, indexers: stackIndexers }),
      workspaces: reflector(client, workspaces, scope),
      updates: reflector(client, updates, { ...scope, indexers: ownedUpdateIndexers }),
      programs: reflector(client, programs, scope),
      approvals: reflector(client, approvals, { ...scope, indexers: approvalIndexers }),
    };
    this.controller = stackController({
      client,
      reflectors,
      events: eventRecorder({ client, component: "test" }),
      git: { policy: { allowHttp: true, allowedAddresses: ["127.0.0.1"] } },
      approvalPolicy: policyInForce,
      namespaces: [namespace],
      metrics: this.metrics,
      clock,
      ...options,
    });
    const { signal } = this.#stop;
    const all = Object.values(reflectors);
    this.synced = Promise.all(all.map((each) => each.waitForSync()));
    this.#running = Promise.all([
      ...all.map((each) => each.run(signal)),
      this.controller.run({ stop: signal, kill: signal }),
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

export class Stage implements AsyncDisposable {
  readonly namespace: string;
  readonly client: Client;
  readonly clock = new JumpingClock();
  readonly simulator: Simulator;
  /** Of the operator. */
  readonly rights: OperatorRights;
  readonly #place: TestNamespace;
  #operator: Operator | undefined;

  private constructor(place: TestNamespace, rights: OperatorRights) {
    this.#place = place;
    this.rights = rights;
    this.namespace = place.name;
    this.client = place.client;
    this.simulator = new Simulator({ client: place.client, namespace: place.name, now: () => this.clock.now() });
  }

  static async set(options: OperatorOptions | "empty" = {}): Promise<Stage> {
    const server = await apiServerWithApi();
    const place = await testNamespace({ server });
    const stage = new Stage(place, await OperatorRights.in(place));
    if (options !== "empty") stage.start(options);
    return stage;
  }

  get operator(): Operator {
    if (!this.#operator) throw new Error("no operator runs");
    return this.#operator;
  }

  start(options: OperatorOptions = {}): Operator {
    this.#operator = new Operator({ client: this.rights.client, name: this.namespace }, this.clock, options);
    return this.#operator;
  }

  async stop(): Promise<void> {
    await this.#operator?.[Symbol.asyncDispose]();
    this.#operator = undefined;
  }

  /** Moves the clock forward. */
  jump(ms: number): void {
    this.clock.jump(ms);
  }

  async program(name: string, text = "one"): Promise<void> {
    const { apiVersion, kind } = programKind;
    const metadata = { name, namespace: this.namespace };
    const program: Program = { apiVersion, kind, metadata, program: { variables: { text } } };
    await this.client.apply(programs, { ...program, metadata }, { fieldManager: "test" });
  }

  async stack(name: string, spec: Partial<StackSpec> = {}): Promise<void> {
    const { apiVersion, kind } = stackKind;
    const metadata = { name, namespace: this.namespace };
    const whole: StackSpec = { stack: "dev", ...(isSourced(spec) ? {} : { programRef: { name: "program" } }), ...spec };
    await this.client.apply(stacks, { apiVersion, kind, metadata, spec: whole }, { fieldManager: "test" });
  }

  async annotate(name: string, annotations: Record<string, string>): Promise<void> {
    const patch = { type: "merge", body: { metadata: { annotations } } } as const;
    await this.client.patch(stacks, { namespace: this.namespace, name }, { patch });
  }

  async get(name: string): Promise<Stack> {
    return await this.client.get(stacks, { namespace: this.namespace, name });
  }

  async find(name: string): Promise<Stack | undefined> {
    return await this.client.find(stacks, { namespace: this.namespace, name });
  }

  async delete(name: string): Promise<void> {
    await this.client.delete(stacks, { namespace: this.namespace, name });
  }

  /** Waits until the predicate holds. Every status on the way is checked. */
  async becomes(name: string, what: string, is: (stack: Stack) => boolean): Promise<Stack> {
    let last: Stack | undefined;
    try {
      return await waitFor(
        async () => {
          last = await this.get(name);
          checkStatus(last);
          return is(last) ? last : undefined;
        },
        { timeoutMs: testTimeoutMs / 4, what: `${name} to be ${what}` },
      );
    } catch (error) {
      throw new Error(`${name} is not ${what}: ${JSON.stringify(last?.status, undefined, 1)}`, { cause: error });
    }
  }

  async isReady(name: string, revision?: string): Promise<Stack> {
    return await this.becomes(name, `ready at ${revision ?? "any revision"}`, (stack) => {
      const isObserved = stack.status?.observedGeneration === stack.metadata.generation;
      const { lastSuccessfulCommit } = stack.status?.lastUpdate ?? {};
      const isThere = revision === undefined || lastSuccessfulCommit === revision;
      return isThere && isObserved && condition(stack, "Ready")?.status === "True";
    });
  }

  /** Returns when the controller has handled a Stack that is created now, and so everything that was due before. */
  async fence(): Promise<void> {
    const name = `fence-${crypto.randomUUID().slice(0, 8)}`;
    await this.stack(name, { programRef: { name: "missing" } });
    await this.becomes(name, "stalled", (stack) => condition(stack, "Stalled") !== undefined);
  }

  async isDeleted(name: string): Promise<void> {
    const isDeleted = async (): Promise<boolean> => (await this.find(name)) === undefined;
    await waitFor(isDeleted, { timeoutMs: testTimeoutMs / 4, what: `${name} to be deleted` });
  }

  /** `type@revision` of each run so far. */
  get runs(): string[] {
    return this.simulator.runs.map(({ type, revision }) => `${type}@${revision}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.simulator[Symbol.asyncDispose]();
    await this.#place.remove();
    await this.rights[Symbol.asyncDispose]();
  }
}

const isSourced = (spec: Partial<StackSpec>): boolean =>
  Boolean(spec.projectRepo || spec.fluxSource || spec.programRef || spec.workspaceTemplate?.spec?.local);

export const condition = ({ status }: Stack, type: string) => status?.conditions?.find((each) => each.type === type);

export const reasonOf = (stack: Stack): string =>
  condition(stack, "Stalled")?.reason ?? condition(stack, "Reconciling")?.reason ?? "";
