/** One life of two Stacks, in phases, each of which the operator may be killed in. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Update, Workspace } from "@pko/api";
import { faultProxy, testNamespace, type FaultProxy, type TestNamespace } from "@pko/testkit";

import { operatorAccount, type OperatorAccount } from "../rights/account.ts";
import { CountingCli } from "./counting-cli.ts";
import { Fuse, textOf, type Point } from "./fuse.ts";
import { PlayedNode } from "./node.ts";
import { Operators, type Blow } from "./operators.ts";
import { Script, type Phase } from "./script.ts";
import type { Stage } from "./stage.ts";
import { Trouble, type TroubleOptions } from "./trouble.ts";
import { Witness } from "./witness.ts";

/** What a phase has come to, which must not depend on where the operator died. */
export interface Outcome {
  /** How often the program really ran, by operation and stack. */
  readonly runs: Readonly<Record<string, number>>;
  readonly changes: Readonly<Record<string, number>>;
  readonly state: readonly string[];
  /** The operator's requests that the API server answered with 403. */
  readonly forbidden: readonly string[];
}

export interface PhaseEnd extends Outcome {
  /** The calls that the operator made. */
  readonly calls: readonly string[];
  /** Whether the point was reached. */
  readonly isFired: boolean;
  readonly ms: number;
}

/** A phase that did not come to its end in time. */
export class Stuck extends Error {}

export interface LifeOptions extends TroubleOptions {
  readonly blow?: Blow;
}

/** From the crash, or from the beginning where there is none. */
const patienceMs = Number(process.env["FAULTS_PATIENCE_SECONDS"] ?? 120) * 1000;
/** Nothing is written any more. */
const quietMs = 1_500;

interface LifeParts {
  readonly place: TestNamespace;
  readonly account: OperatorAccount;
  readonly proxy: FaultProxy;
  readonly options: LifeOptions;
}

export class Life implements AsyncDisposable {
  readonly #options: LifeOptions;
  readonly #place: TestNamespace;
  readonly #account: OperatorAccount;
  readonly #proxy: FaultProxy;
  readonly #folder: string;
  readonly #fuse = new Fuse();
  readonly #trouble: Trouble;
  readonly #cli: CountingCli;
  readonly #script: Script;
  readonly #node: PlayedNode;
  readonly #witness: Witness;
  readonly #operators: Operators;
  #isLed = true;
  /** When somebody has taken over from a leader that was frozen. */
  #ledSince = 0;
  #lastPhase: Phase | undefined;
  /** How many of the proxy's requests were examined for 403s. */
  #examined = 0;

  private constructor(stage: Stage, { place, account, proxy, options }: LifeParts) {
    this.#options = options;
    this.#place = place;
    this.#account = account;
    this.#proxy = proxy;
    this.#folder = join(stage.folder, place.name);
    for (const folder of ["backend", "git"]) mkdirSync(join(this.#folder, folder), { recursive: true });
    writeFileSync(join(this.#folder, "kubeconfig"), proxy.kubeconfig);
    const own = { client: place.client, namespace: place.name, folder: this.#folder };
    const commits: string[] = [];
    const strike = (): Promise<void> => this.#operators.strike();
    this.#operators = new Operators({ ...own, program: stage.operator, blow: options.blow ?? "kill" });
    this.#trouble = new Trouble({ ...options, fuse: this.#fuse, strike });
    this.#cli = new CountingCli(this.#folder);
    this.#node = new PlayedNode({
      ...own,
      agent: stage.agent,
      pulumi: this.#cli.path,
      arrive: (method, workspace) => this.#trouble.arrive(`rpc ${method} ${workspace}`),
      strike,
    });
    this.#witness = new Witness({ ...own, commits });
    this.#script = new Script({ ...own, witness: this.#witness, commits });
    proxy.on((request) => this.#trouble.judge(request));
    proxy.onEvent(() => this.#trouble.lag());
  }

  static async begin(stage: Stage, options: LifeOptions = {}): Promise<Life> {
    const place = await testNamespace({ server: stage.server });
    // As the chart installs it for one namespace: the operator has its roles, all else here is an admin's.
    const { name } = place;
    const account = await operatorAccount({ admin: stage.server.credentials, home: name, namespaces: [name] });
    const proxy = await faultProxy(account.credentials);
    const life = new Life(stage, { place, account, proxy, options });
    await life.#witness.synced;
    return life;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operators[Symbol.asyncDispose]();
    await this.#node[Symbol.asyncDispose]();
    await this.#witness[Symbol.asyncDispose]();
    await this.#proxy.close();
    await this.#script.stop();
    await this.#account.remove();
    await this.#place.remove();
    if (process.env["FAULTS_KEEP"] === undefined) rmSync(this.#folder, { recursive: true, force: true });
  }

  get folder(): string {
    return this.#folder;
  }

  /** Calls that went wrong without a point. */
  get troubles(): number {
    return this.#trouble.count;
  }

  /** The one that it has come through. */
  get lastPhase(): Phase | undefined {
    return this.#lastPhase;
  }

  async run(phase: Phase, point?: Point): Promise<PhaseEnd> {
    const begunAt = performance.now();
    this.#fuse.arm(point);
    this.#isLed = false;
    if (!this.#lastPhase) this.#operators.start();
    const isEnd = await this.#script.act(phase);
    await this.#settled(isEnd, begunAt, `${phase}, ${point ? textOf(point) : "undisturbed"}`);
    await this.#wake();
    if (this.#node.faults.length > 0) throw new AggregateError(this.#node.faults, "the played node failed");
    this.#lastPhase = phase;
    return {
      runs: this.#cli.takeRuns(),
      changes: this.#witness.takeChanges(),
      state: this.#witness.snapshot(),
      forbidden: this.takeForbidden(),
      calls: this.#fuse.calls,
      isFired: this.#fuse.firedAt !== undefined,
      ms: performance.now() - begunAt,
    };
  }

  /** The requests since the last call that the API server answered with 403. */
  takeForbidden(): string[] {
    const requests = this.#proxy.requests.slice(this.#examined);
    this.#examined += requests.length;
    return requests
      .filter(({ status }) => status === 403)
      .map(({ verb, resource, subresource, name }) => [verb, resource, subresource, name].filter(Boolean).join(" "));
  }

  /** Nothing is under way: every Update has ended and was let go, every Workspace is prepared for its spec. */
  #isAtRest(): boolean {
    const updates = this.#witness.objects("Update") as Update[];
    const isOver = updates.every(
      ({ metadata, status }) =>
        !metadata.finalizers &&
        status?.conditions?.some(({ type, status }) => type === "Complete" && status === "True"),
    );
    const workspaces = this.#witness.objects("Workspace") as Workspace[];
    return (
      isOver &&
      workspaces.every(
        ({ metadata, status }) =>
          status?.observedGeneration === metadata.generation &&
          status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
      )
    );
  }

  async #settled(isEnd: () => boolean, begunAt: number, what: string): Promise<void> {
    const quiet = quietMs + 2 * (this.#options.lagMs ?? 0);
    for (;;) {
      const now = performance.now();
      const isQuiet = isEnd() && this.#isAtRest() && now - Math.max(this.#trouble.lastWriteAt, this.#ledSince) > quiet;
      if (isQuiet && (await this.#isTakenOver())) return;
      if (now - (this.#fuse.firedAt ?? begunAt) > patienceMs) {
        throw new Stuck(`${what}: not at its end after ${patienceMs / 1000} s: ${this.#witness.snapshot().join("\n")}`);
      }
      await Bun.sleep(50);
    }
  }

  /** Whether somebody leads, and has for a while. */
  async #isTakenOver(): Promise<boolean> {
    if (this.#isLed || !this.#operators.hasFrozen) return true;
    this.#isLed = await this.#operators.isLed();
    // It begins only now.
    if (this.#isLed) this.#ledSince = performance.now();
    return false;
  }

  /** Who was frozen does nothing any more, and ends. */
  async #wake(): Promise<void> {
    const before = this.#fuse.calls.length;
    const hasEnded = await this.#operators.wake();
    const calls = this.#fuse.calls.slice(before);
    if (hasEnded && calls.length === 0) return;
    const end = hasEnded ? "ended" : "not ended";
    throw new Error(`a deposed leader has ${end}, and made ${calls.join(", ") || "no call"}`);
  }
}
