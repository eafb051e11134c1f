/** A scene with a Stack controller. A simulator replaces the other controllers. */
import { programKind, stackKind, type Program, type Stack, type StackSpec } from "@pko/api";
import type { Client, Controller, Key } from "@pko/kube";
import { programs, slots, stackController, stacks, type SlotLimits, type StackControllerOptions } from "@pko/operator";

import { policyInForce } from "../approvals/decide.ts";
import { JumpingClock } from "../harness/jumping-clock.ts";
import type { Operator, OperatorParts, Wiring } from "../harness/operator.ts";
import { openPlace, Scene, testTimeoutMs, type SceneParts } from "../harness/scene.ts";
import { Simulator } from "./simulator.ts";

export { testTimeoutMs };

interface StackOptions extends Partial<
  Pick<StackControllerOptions, "git" | "listRefs" | "log" | "approvalPolicy" | "pushes">
> {
  /** The operator's client, for example through a proxy. */
  readonly client?: Client;
  /** Of slots for updates; none if absent. */
  readonly limits?: SlotLimits;
  /** Whether WorkspaceClasses apply. */
  readonly classes?: boolean;
}

/** For `Operator`. */
export function stackWiring(
  namespace: string,
  { limits, classes = false, ...options }: Omit<StackOptions, "client"> = {},
) {
  return ({ stores, ...parts }: OperatorParts): Wiring => {
    const { stacks, workspaces, updates, programs, approvals } = stores;
    const wake = (workspace: Key): void => controller.enqueue(workspace);
    const controller: Controller = stackController({
      ...(limits && { slots: slots({ ...parts, limits, updates: updates.store, wake }) }),
      ...parts,
      reflectors: { stacks, workspaces, updates, programs, approvals },
      workspaceClasses: classes ? stores.workspaceClasses : undefined,
      git: { policy: { allowHttp: true, allowedAddresses: ["127.0.0.1"] } },
      approvalPolicy: policyInForce,
      namespaces: [namespace],
      ...options,
    });
    return { controllers: [controller] };
  };
}

export class StackScene extends Scene {
  readonly clock = new JumpingClock();
  readonly simulator: Simulator;
  #operator: Operator | undefined;

  private constructor(parts: SceneParts) {
    super(parts);
    const { client, namespace, watches } = this;
    this.simulator = new Simulator({ client, namespace, watches, now: () => this.clock.now() });
    this.defer(() => this.simulator[Symbol.asyncDispose]());
  }

  /** With an operator that has these options, unless the test starts one later. */
  static async open(options: StackOptions | "without operator" = {}): Promise<StackScene> {
    const scene = new StackScene(await openPlace());
    if (options !== "without operator") scene.start(options);
    return scene;
  }

  /** The operator that was started last. */
  get operator(): Operator {
    if (!this.#operator) throw new Error("no operator is running");
    return this.#operator;
  }

  start({ client = this.rights.client, ...options }: StackOptions = {}): Operator {
    this.#operator = this.startOperator({ client, clock: this.clock }, stackWiring(this.namespace, options));
    return this.#operator;
  }

  async stop(): Promise<void> {
    await this.#operator?.stop();
    this.#operator = undefined;
  }

  /** Moves the clock forward. */
  jump(ms: number): void {
    this.clock.jump(ms);
  }

  async program(name: string, text = "one"): Promise<void> {
    const { apiVersion, kind } = programKind;
    const metadata = this.ref(name);
    const program: Program = { apiVersion, kind, metadata, program: { variables: { text } } };
    await this.client.apply(programs, { ...program, metadata }, { fieldManager: "test" });
  }

  async stack(name: string, spec: Partial<StackSpec> = {}): Promise<void> {
    const { apiVersion, kind } = stackKind;
    const metadata = this.ref(name);
    const whole: StackSpec = { stack: "dev", ...(isSourced(spec) ? {} : { programRef: { name: "program" } }), ...spec };
    await this.client.apply(stacks, { apiVersion, kind, metadata, spec: whole }, { fieldManager: "test" });
  }

  async annotate(name: string, annotations: Record<string, string>): Promise<void> {
    const patch = { type: "merge", body: { metadata: { annotations } } } as const;
    await this.client.patch(stacks, this.ref(name), { patch });
  }

  async get(name: string): Promise<Stack> {
    return await this.client.get(stacks, this.ref(name));
  }

  async find(name: string): Promise<Stack | undefined> {
    return await this.client.find(stacks, this.ref(name));
  }

  async delete(name: string): Promise<void> {
    await this.client.delete(stacks, this.ref(name));
  }

  /** Waits until the predicate holds. Every status on the way is checked. */
  async becomes(name: string, what: string, is: (stack: Stack) => boolean): Promise<Stack> {
    return await this.untilObject(stacks, name, { what, is, timeoutMs: testTimeoutMs / 2 });
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
    await this.untilDeleted(stacks, name);
  }

  /** `type@revision` of each run so far. */
  get runs(): string[] {
    return this.simulator.runs.map(({ type, revision }) => `${type}@${revision}`);
  }
}

const isSourced = (spec: Partial<StackSpec>): boolean =>
  Boolean(spec.projectRepo || spec.fluxSource || spec.programRef || spec.workspaceTemplate?.spec?.local);

export const condition = ({ status }: Stack, type: string) => status?.conditions?.find((each) => each.type === type);

export const reasonOf = (stack: Stack): string =>
  condition(stack, "Stalled")?.reason ?? condition(stack, "Reconciling")?.reason ?? "";
