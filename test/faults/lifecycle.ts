/** The lifecycle of Stacks in phases; the operator may crash in each phase. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { isComplete, type Update, type Workspace } from "@pko/api";
import { faultProxy, testNamespace, type FaultProxy, type TestNamespace } from "@pko/testkit";

import { createUser, type TestUser } from "../integration/install/users.ts";
import { operatorAccount, type OperatorAccount } from "../rights/account.ts";
import { changingRuns } from "./agent-records.ts";
import { Approver } from "./approver.ts";
import { violations } from "./audit.ts";
import { CountingCli } from "./counting-cli.ts";
import { Fuse, pointText, type Point } from "./fuse.ts";
import { FakeKubelet } from "./fake-kubelet.ts";
import { Operators, type CrashMode } from "./operators.ts";
import { guarded, Script, type Phase } from "./script.ts";
import type { Stage } from "./stage.ts";
import { FaultInjector, type FaultOptions } from "./fault-injector.ts";
import { Observer } from "./observer.ts";

/** The outcome of a phase, which must not depend on where the operator crashed. */
export interface Outcome {
  /** How often the program ran, by operation and stack. */
  readonly runs: Readonly<Record<string, number>>;
  readonly changes: Readonly<Record<string, number>>;
  readonly state: readonly string[];
  /** The operator's requests with the response 403. */
  readonly forbidden: readonly string[];
  /** Changes without an approval, where one is required, since the start of the lifecycle. */
  readonly unapproved: readonly string[];
}

export interface PhaseEnd extends Outcome {
  /** The calls that the operator made. */
  readonly calls: readonly string[];
  /** Whether the crash point was reached. */
  readonly isFired: boolean;
  readonly ms: number;
}

/** A phase that did not end in time. */
export class Stuck extends Error {}

export interface LifecycleOptions extends FaultOptions {
  readonly crashMode?: CrashMode;
  /** Further variables of the operator. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** The time limit of an undisturbed phase. */
const timeoutMs = Number(process.env["FAULTS_TIMEOUT_SECONDS"] ?? 240) * 1000;
/** A phase with faults waits for retries as well. How long it takes is not tested: only whether it ends. */
const disturbedTimeoutMs = 3 * timeoutMs;
/** A phase has ended when nothing was written for this long. */
const quietMs = 1_500;

interface LifecycleParts {
  readonly place: TestNamespace;
  readonly account: OperatorAccount;
  readonly approver: TestUser;
  readonly proxy: FaultProxy;
  readonly options: LifecycleOptions;
}

export class Lifecycle implements AsyncDisposable {
  readonly #options: LifecycleOptions;
  readonly #place: TestNamespace;
  readonly #account: OperatorAccount;
  readonly #proxy: FaultProxy;
  readonly #folder: string;
  readonly #fuse = new Fuse();
  readonly #injector: FaultInjector;
  readonly #cli: CountingCli;
  readonly #script: Script;
  readonly #approver: Approver;
  readonly #kubelet: FakeKubelet;
  readonly #observer: Observer;
  readonly #operators: Operators;
  #isLed = true;
  /** When another operator took over from a frozen leader. */
  #ledSince = 0;
  #lastPhase: Phase | undefined;
  /** How many of the proxy's requests were checked for 403. */
  #examined = 0;

  private constructor(stage: Stage, { place, account, approver, proxy, options }: LifecycleParts) {
    this.#options = options;
    this.#place = place;
    this.#account = account;
    this.#proxy = proxy;
    this.#folder = join(stage.folder, place.name);
    for (const folder of ["backend", "git"]) mkdirSync(join(this.#folder, folder), { recursive: true });
    writeFileSync(join(this.#folder, "kubeconfig"), proxy.kubeconfig);
    const own = { client: place.client, namespace: place.name, folder: this.#folder };
    const commits: string[] = [];
    const crash = (): Promise<void> => this.#operators.crash();
    const { crashMode = "kill", environment } = options;
    this.#operators = new Operators({ ...own, program: stage.programs.operator, crashMode, environment });
    this.#injector = new FaultInjector({ ...options, fuse: this.#fuse, crash });
    this.#cli = new CountingCli(this.#folder, "quick-pulumi");
    this.#kubelet = new FakeKubelet({
      ...own,
      agent: stage.programs.agent,
      pulumi: this.#cli.path,
      arrive: (method, workspace) => this.#injector.arrive(`rpc ${method} ${workspace}`),
      crash,
    });
    this.#observer = new Observer({ ...own, commits });
    this.#approver = new Approver({ client: approver.client, namespace: place.name });
    const { cli, observer } = { cli: this.#cli, observer: this.#observer };
    this.#script = new Script({ ...own, observer, commits, approver: this.#approver, cli });
    proxy.on((request) => this.#injector.verdict(request));
    proxy.onEvent((_, { resource }) => this.#injector.delayEvent(resource));
  }

  static async start(stage: Stage, options: LifecycleOptions = {}): Promise<Lifecycle> {
    const place = await testNamespace({ server: stage.server });
    // Like the chart for one namespace: the operator has its roles, everything else here uses an admin's credentials.
    const { name } = place;
    const account = await operatorAccount({ admin: stage.server.credentials, home: name, namespaces: [name] });
    const approver = await createUser(place, { name: "anna", roles: ["approver"] });
    const proxy = await faultProxy(account.credentials);
    const lifecycle = new Lifecycle(stage, { place, account, approver, proxy, options });
    await lifecycle.#observer.synced;
    return lifecycle;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operators[Symbol.asyncDispose]();
    await this.#kubelet[Symbol.asyncDispose]();
    await this.#approver[Symbol.asyncDispose]();
    await this.#observer[Symbol.asyncDispose]();
    await this.#proxy.close();
    await this.#script.stop();
    await this.#account.remove();
    await this.#place.remove();
    if (process.env["FAULTS_KEEP"] === undefined) rmSync(this.#folder, { recursive: true, force: true });
  }

  get folder(): string {
    return this.#folder;
  }

  /** Calls that failed without a crash point. */
  get injectedFaults(): number {
    return this.#injector.count;
  }

  /** The last phase that has ended. */
  get lastPhase(): Phase | undefined {
    return this.#lastPhase;
  }

  async run(phase: Phase, point?: Point): Promise<PhaseEnd> {
    const startedAt = performance.now();
    this.#fuse.arm(point);
    this.#isLed = false;
    if (!this.#lastPhase) this.#operators.start();
    const isEnd = await this.#script.start(phase);
    await this.#waitUntilEnd(isEnd, startedAt, `${phase}, ${point ? pointText(point) : "without a crash"}`);
    await this.#wakeFrozen();
    const faults = [...this.#kubelet.faults, ...this.#approver.faults];
    if (faults.length > 0) throw new AggregateError(faults, "the fake kubelet or the approver failed");
    this.#lastPhase = phase;
    return {
      runs: this.#cli.takeRuns(),
      changes: this.#observer.takeChanges(),
      state: this.#observer.snapshot(),
      forbidden: this.takeForbidden(),
      unapproved: this.#unapproved(),
      calls: this.#fuse.calls,
      isFired: this.#fuse.firedAt !== undefined,
      ms: performance.now() - startedAt,
    };
  }

  /** The requests since the last call that got the response 403. */
  takeForbidden(): string[] {
    const requests = this.#proxy.requests.slice(this.#examined);
    this.#examined += requests.length;
    return requests
      .filter(({ status }) => status === 403)
      .map(({ verb, resource, subresource, name }) => [verb, resource, subresource, name].filter(Boolean).join(" "));
  }

  #unapproved(): string[] {
    const { approvals, plans } = this.#observer;
    const { appliedPlans: applied } = this.#kubelet;
    return violations({ guarded, runs: changingRuns(this.#folder), applied, approvals, plans });
  }

  /** Every Update has ended and has no finalizer, and every Workspace is Ready for its spec. */
  #isIdle(): boolean {
    const updates = this.#observer.objects("Update") as Update[];
    const isOver = updates.every((update) => !update.metadata.finalizers && isComplete(update));
    const workspaces = this.#observer.objects("Workspace") as Workspace[];
    return (
      isOver &&
      workspaces.every(
        ({ metadata, status }) =>
          status?.observedGeneration === metadata.generation &&
          status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
      )
    );
  }

  async #waitUntilEnd(isEnd: () => boolean, startedAt: number, what: string): Promise<void> {
    const quiet = quietMs + 2 * (this.#options.lagMs ?? 0);
    for (;;) {
      const now = performance.now();
      const isQuiet = isEnd() && this.#isIdle() && now - Math.max(this.#injector.lastWriteAt, this.#ledSince) > quiet;
      if (isQuiet && (await this.#isTakenOver())) return;
      const limitMs = this.#isDisturbed ? disturbedTimeoutMs : timeoutMs;
      if (now - startedAt > limitMs) {
        throw new Stuck(`${what}: did not end within ${limitMs / 1000} s: ${this.#observer.snapshot().join("\n")}`);
      }
      await Bun.sleep(50);
    }
  }

  get #isDisturbed(): boolean {
    const { faultRate = 0, lagMs = 0 } = this.#options;
    return faultRate > 0 || lagMs > 0 || this.#fuse.firedAt !== undefined;
  }

  /** Whether another operator leads, and has for a while. */
  async #isTakenOver(): Promise<boolean> {
    if (this.#isLed || !this.#operators.hasFrozen) return true;
    this.#isLed = await this.#operators.isLed();
    // It starts only now.
    if (this.#isLed) this.#ledSince = performance.now();
    return false;
  }

  /** A frozen operator must make no further call when it wakes up, and end. */
  async #wakeFrozen(): Promise<void> {
    const before = this.#fuse.calls.length;
    const hasEnded = await this.#operators.resumeFrozen();
    const calls = this.#fuse.calls.slice(before);
    if (hasEnded && calls.length === 0) return;
    const end = hasEnded ? "ended" : "not ended";
    throw new Error(`a former leader has ${end} and made ${calls.join(", ") || "no call"}`);
  }
}
