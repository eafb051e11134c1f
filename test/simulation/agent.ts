/** The agent of a workspace's pod: it prepares and runs like the real one, with a CLI that only changes the simulated backend. */
import { createHash } from "node:crypto";

import { addEvent, noProgress, type Progress, type RunEvent } from "@pko/records";
import {
  fail,
  succeed,
  type AgentError,
  type CancelResult,
  type Output,
  type Operation,
  type PreparePhase,
  type PrepareReason,
  type PrepareRequest,
  type PrepareResult,
  type RecordResult,
  type Reply,
  type RunResult,
  type SealedPlan,
  type StartRequest,
  type StartResult,
} from "@pko/rpc";

import { confirmedProcesses, isAllStale } from "../../packages/agent/src/pulumi/locks.ts";
import type { SeededRandom } from "../../packages/kube/testing/seeded-random.ts";
import type { Backend, CliProcess } from "./backend.ts";
import type { VirtualProcess } from "./virtual-time.ts";

export interface AgentOptions {
  readonly process: VirtualProcess;
  readonly backend: Backend;
  readonly random: SeededRandom;
  /** Of the pod, which locks record. */
  readonly hostname: string;
  /** The cluster and the workspace, to explain a violation. */
  readonly where: string;
  /** Why the source cannot be fetched now. */
  readonly sourceProblem: (request: PrepareRequest) => string | undefined;
  /** Whether programs may fail now. */
  readonly mayFail: () => boolean;
  /** Whether the node's disk is full. */
  readonly isDiskFull: () => boolean;
  readonly onStart: (started: StartedRun) => void;
  /** Nobody can read the results of these runs any more. */
  readonly onLost: (runIds: Iterable<string>) => void;
  /** In the outputs of every stack. */
  readonly secretOutput: string;
}

/** A process of the CLI has started. */
export interface StartedRun {
  readonly where: string;
  readonly request: StartRequest;
  readonly stack: string;
  readonly content: string;
}

interface PreparedStack {
  /** Identifies the request. */
  readonly preparation: string;
  readonly stack: string;
  readonly content: string;
  readonly revision: string;
}

interface SimulatedRun {
  readonly request: StartRequest;
  readonly prepared: PreparedStack;
  readonly cli: CliProcess;
  readonly startedAt: string;
  readonly events: { readonly seq: number; readonly time: string; readonly event: RunEvent }[];
  progress: Progress;
  result?: RunResult;
  plan?: SealedPlan;
  lockedAt?: string;
}

interface Preparing {
  readonly key: string;
  readonly phases: PreparePhase[];
  readonly done: PromiseWithResolvers<PrepareResult>;
}

export type RunView = Pick<SimulatedRun, "events" | "progress" | "result">;

const project = { name: "shop", runtime: "yaml" };

export class SimulatedAgent {
  readonly #options: AgentOptions;
  #process: VirtualProcess;
  #prepared = new Map<string, PreparedStack>();
  #preparing: Preparing | undefined;
  /** Requests have other names in another process. */
  #salt: number;
  readonly #runs = new Map<string, SimulatedRun>();
  readonly #reportedUnknown = new Set<string>();
  /** Processes of this pod that have ended without unlocking. */
  readonly #dead: SimulatedRun[] = [];
  #active: SimulatedRun | undefined;
  #isStopping = false;
  #nextPid = 20;
  readonly #listeners = new Set<() => void>();

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#process = options.process;
    this.#salt = options.process.clock.now();
  }

  get isIdle(): boolean {
    return this.#active === undefined;
  }

  /** Calls the listener whenever a run or a preparation changes. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** For a watch. */
  find(runId: string): RunView | undefined {
    return this.#find(runId);
  }

  /** A run that is reported as unknown must not start later. A real request does not outlive the agent process that it was sent to. */
  #find(runId: string): SimulatedRun | undefined {
    const run = this.#runs.get(runId);
    if (!run) this.#reportedUnknown.add(runId);
    return run;
  }

  get phases(): readonly PreparePhase[] {
    return this.#preparing?.phases ?? [];
  }

  async prepare(request: PrepareRequest): Promise<Reply<PrepareResult, AgentError>> {
    const { knownClis: _, ...identifying } = request;
    const key = digest([this.#salt, identifying]);
    if (this.#isStopping) return fail("stopping", "the workspace is stopping");
    if (this.#active) {
      return { ok: false, error: { code: "busy", message: "a run is active", activeRun: this.#active.request.runId } };
    }
    const current = this.#preparing;
    const preparing = current?.key === key ? current : this.#startPreparing(key, request);
    return succeed(await preparing.done.promise);
  }

  /** Replaces the preparation for another request. */
  #startPreparing(key: string, request: PrepareRequest): Preparing {
    this.#preparing?.done.resolve(superseded);
    const preparing: Preparing = { key, phases: [], done: Promise.withResolvers() };
    this.#preparing = preparing;
    this.#prepared.clear();
    void this.#finishPreparing(preparing, request);
    return preparing;
  }

  async #finishPreparing(preparing: Preparing, request: PrepareRequest): Promise<void> {
    const result = await this.#prepare(request, preparing);
    if (this.#preparing === preparing) this.#preparing = undefined;
    preparing.done.resolve(result);
  }

  async #prepare(request: PrepareRequest, preparing: Preparing): Promise<PrepareResult> {
    const { random, isDiskFull, sourceProblem } = this.#options;
    for (const phase of ["source", "install", "stack", "config"] as const) {
      preparing.phases.push(phase);
      this.#notify();
      await this.#process.pause(20 + random.next() ** 3 * 2000);
      if (this.#preparing !== preparing) return superseded;
      if (isDiskFull()) return failed("other", "no space left on device");
      const problem = phase === "source" ? sourceProblem(request) : undefined;
      if (problem !== undefined) return failed("sourceUnavailable", problem);
    }
    const revision = revisionOf(request);
    const preparation = preparing.key;
    this.#prepared = new Map(
      request.stacks.map((settings) => {
        const content = contentOf(request, settings.name);
        return [settings.name, { preparation, stack: settings.name, content, revision }];
      }),
    );
    const [first] = request.stacks;
    const changed = { source: true, dependencies: true, stack: true, config: true };
    const timings = { source: 1, install: 1, stack: 1, config: 1 };
    return {
      ok: true,
      prepared: {
        preparation,
        revision,
        stack: first?.name ?? "",
        project,
        pulumiVersion: "3.200.0",
        changed,
        timings,
      },
    };
  }

  start(request: StartRequest): Reply<StartResult, AgentError> {
    const known = this.#runs.get(request.runId);
    if (known) return succeed(startResult(known));
    if (this.#reportedUnknown.has(request.runId)) return fail("invalidRequest", "the request is outdated");
    if (this.#isStopping) return fail("stopping", "the workspace is stopping");
    if (this.#active) {
      return {
        ok: false,
        error: { code: "busy", message: "another run is active", activeRun: this.#active.request.runId },
      };
    }
    if (this.#preparing) return fail("busy", "the workspace is being prepared");
    const prepared = request.stack === undefined ? [...this.#prepared.values()][0] : this.#prepared.get(request.stack);
    const isWanted = prepared && [undefined, prepared.preparation].includes(request.preparation);
    if (!prepared || !isWanted) return fail("unprepared", "the workspace is not prepared for this run");
    const { where, hostname, onStart } = this.#options;
    const startedAt = this.#timestamp();
    const cli = { hostname, pid: this.#nextPid++, startedAt, runId: request.runId, where, isAlive: true };
    const run: SimulatedRun = { request, prepared, cli, startedAt, events: [], progress: noProgress };
    this.#runs.set(request.runId, run);
    this.#active = run;
    onStart({ where, request, stack: prepared.stack, content: prepared.content });
    void this.#run(run);
    return succeed({ state: "started", lastSeq: 0, progress: noProgress });
  }

  cancel(runId: string): Reply<CancelResult, AgentError> {
    const run = this.#find(runId);
    if (!run) return fail("notFound", "there is no such run");
    if (run.result) return succeed({ state: "finished" });
    this.#process.after(500, () => this.#end(run, { outcome: "cancelled", errorClass: "cancelled" }));
    return succeed({ state: "cancelling" });
  }

  outputs(runId: string): Reply<readonly Output[], AgentError> {
    const run = this.#runs.get(runId);
    if (!run) return fail("notFound", "there is no such run");
    if (run.result?.outcome !== "succeeded") return fail("unprepared", "the run has not succeeded");
    const known = { known: true, secret: false };
    return succeed([
      { name: "content", value: run.prepared.content, ...known },
      { name: "password", value: this.#options.secretOutput, known: true, secret: true },
    ]);
  }

  plan(runId: string): Reply<SealedPlan, AgentError> {
    const run = this.#runs.get(runId);
    if (!run) return fail("notFound", "there is no such run");
    return run.plan ? succeed(run.plan) : fail("unprepared", "the run has no plan");
  }

  record(runId: string): Reply<RecordResult, AgentError> {
    const run = this.#runs.get(runId);
    if (!run) return fail("notFound", "there is no such run");
    if (!run.result) return fail("unprepared", "the run is active");
    return succeed({
      content: "H4sIAAAAAAAAA6uuBQBDv6ajAgAAAA==",
      omitted: { events: 0, resources: 0, values: 0 },
      versions: { agent: "sim" },
      inputs: {},
    });
  }

  /** SIGTERM: the run is interrupted, and releases its lock. */
  stop(): void {
    this.#isStopping = true;
    const run = this.#active;
    if (run) this.#process.after(1000, () => this.#end(run, { outcome: "interrupted", errorClass: "interrupted" }));
  }

  get activeRun(): string | undefined {
    return this.#active?.request.runId;
  }

  /** The container is killed: so is the CLI, which leaves its lock. What is on disk stays, unless the files are lost. */
  crash(process: VirtualProcess, { losesFiles = false } = {}): void {
    const run = this.#active;
    this.#process.kill();
    this.#process = process;
    this.#preparing?.done.resolve(superseded);
    this.#preparing = undefined;
    this.#salt = process.clock.now();
    this.#isStopping = false;
    if (run) this.#kill(run);
    if (losesFiles) {
      this.abandon();
      this.#prepared.clear();
      this.#runs.clear();
      this.#dead.length = 0;
      this.#active = undefined;
      this.#notify();
    }
    if (!run || losesFiles) return;
    this.#dead.push(run);
    // The next agent process finds the run on disk.
    this.#finish(run, { outcome: "interrupted", errorClass: "interrupted" });
  }

  stepClock(ms: number): void {
    this.#process.stepWallClock(ms);
  }

  /** The API server no longer has the pod, or its files are lost. */
  abandon(): void {
    this.#options.onLost(this.#runs.keys());
  }

  /** The pod is gone, and everything in it. */
  destroy(): void {
    this.abandon();
    this.#process.kill();
    if (this.#active) this.#kill(this.#active);
  }

  #kill(run: SimulatedRun): void {
    run.cli.isAlive = false;
    this.#options.backend.stopWriting(run.prepared.stack, run.cli);
  }

  async #run(run: SimulatedRun): Promise<void> {
    const { random, isDiskFull } = this.#options;
    const { operation } = run.request;
    await this.#process.pause(100 + random.next() * 1500);
    if (run.result) return;
    if (isDiskFull())
      return this.#end(run, { outcome: "failed", errorClass: "other", message: "no space left on device" });
    const isReading = operation.kind === "preview" || ("previewOnly" in operation && operation.previewOnly);
    if (isReading) return await this.#preview(run, operation);
    if (!this.#lock(run)) {
      return this.#end(run, { outcome: "failed", errorClass: "conflict", message: "the stack is locked" });
    }
    await this.#change(run, operation);
  }

  async #preview(run: SimulatedRun, operation: Operation): Promise<void> {
    await this.#process.pause(200 + this.#options.random.next() * 5000);
    if (run.result) return;
    if ("savePlan" in operation && operation.savePlan) {
      const content = `${this.#planBase(run, operation)} ${run.request.runId}`;
      run.plan = { digest: digest(content), content };
    }
    this.#end(run, { outcome: "succeeded" });
  }

  #lock(run: SimulatedRun): boolean {
    const { backend } = this.#options;
    const { stack } = run.prepared;
    const now = this.#process.clock.now();
    if (!backend.lock(stack, run.cli, now)) {
      const held = backend.lockOf(stack);
      if (!held) return false;
      const { hostname, pid } = held.process;
      const holder = { url: "s3://bucket", username: "pulumi", hostname, pid, time: held.time, since: "" };
      const dead = this.#dead.flatMap(({ cli, lockedAt }) => (lockedAt === undefined ? [] : { ...cli, lockedAt }));
      const confirmed = [...dead, ...confirmedProcesses(run.request.lostRuns ?? [])];
      if (!isAllStale({ count: 1, holders: [holder] }, confirmed)) return false;
      backend.removeLock(stack);
      if (!backend.lock(stack, run.cli, now)) return false;
    }
    return true;
  }

  async #change(run: SimulatedRun, operation: Operation): Promise<void> {
    const { backend, random } = this.#options;
    const { stack, content } = run.prepared;
    const planned = "applyPlan" in operation ? operation.applyPlan : undefined;
    if (planned && !planned.content.startsWith(`${this.#planBase(run, operation)} `)) {
      return this.#end(run, { outcome: "failed", errorClass: "planStale", message: "the plan is out of date" });
    }
    // The CLI prints that it has the lock, and the agent reports it.
    await this.#process.pause(10 + random.next() * 300);
    if (run.result) return;
    const { hostname, pid } = run.cli;
    run.lockedAt = this.#timestamp();
    const holder = { hostname, pid, startedAt: run.startedAt, lockedAt: run.lockedAt };
    this.#emit(run, { kind: "notice", message: "the stack is locked", process: holder });
    backend.startWriting(stack, run.cli);
    await this.#process.pause(200 + random.next() ** 2 * 40_000);
    if (run.result) return;
    backend.stopWriting(stack, run.cli);
    if (this.#options.mayFail() && random.next() < 0.03)
      return this.#end(run, { outcome: "failed", errorClass: "programError", message: "the program failed" });
    if (operation.kind !== "refresh") {
      const destroyed = operation.kind === "destroy";
      backend.write({
        where: this.#options.where,
        stack,
        operation: operation.kind,
        runId: run.request.runId,
        content: destroyed ? undefined : content,
      });
    }
    if (operation.kind === "destroy" && operation.remove) this.#prepared.delete(stack);
    this.#end(run, { outcome: "succeeded" });
  }

  /** What a plan depends on. */
  #planBase({ prepared }: SimulatedRun, { kind }: Operation): string {
    const { version } = this.#options.backend.state(prepared.stack);
    const { stack, content, revision } = prepared;
    const changes = kind === "destroy" ? "destroy" : "up";
    return Buffer.from(JSON.stringify({ stack, content, revision, changes, version })).toString("base64");
  }

  #end(run: SimulatedRun, ending: Ending): void {
    if (run.result || !run.cli.isAlive) return;
    const { backend } = this.#options;
    run.cli.isAlive = false;
    backend.stopWriting(run.prepared.stack, run.cli);
    backend.unlock(run.prepared.stack, run.cli);
    this.#finish(run, ending);
  }

  #finish(run: SimulatedRun, { outcome, errorClass, message = outcome }: Ending): void {
    const { operation } = run.request;
    const { stack, revision } = run.prepared;
    run.result = {
      outcome,
      operation: operation.kind,
      stack,
      project,
      revision,
      startedAt: run.startedAt,
      finishedAt: this.#timestamp(),
      progress: run.progress,
      changes: {},
      ...(errorClass && { error: { class: errorClass, message, lines: [] } }),
      ...(run.plan && {
        plan: {
          digest: run.plan.digest,
          changes: true,
          destructive: operation.kind === "destroy",
          unknownInputs: 0,
          summary: "+ one",
        },
      }),
      output: { tail: "", bytes: 0, truncated: false },
      ...(outcome === "succeeded" && { outputs: { names: ["content", "password"], secretNames: ["password"] } }),
    };
    if (this.#active === run) this.#active = undefined;
    this.#notify();
  }

  #emit(run: SimulatedRun, event: RunEvent): void {
    run.events.push({ seq: run.events.length + 1, time: this.#timestamp(), event });
    run.progress = addEvent(run.progress, event);
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  #timestamp(): string {
    return new Date(this.#process.clock.now()).toISOString();
  }
}

interface Ending {
  readonly outcome: RunResult["outcome"];
  readonly errorClass?: NonNullable<RunResult["error"]>["class"];
  readonly message?: string;
}

const failed = (reason: PrepareReason, message: string): PrepareResult => ({
  ok: false,
  failure: { phase: "source", reason, message, lines: [] },
});

const superseded = failed("superseded", "a newer request replaced this one");

const startResult = (run: SimulatedRun): StartResult => ({
  state: run.result ? "finished" : "running",
  lastSeq: run.events.length,
  progress: run.progress,
  ...(run.result && { result: run.result }),
});

export const digest = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex");

function revisionOf({ source }: PrepareRequest): string {
  if (source.kind === "git") return source.commit ?? "";
  return "revision" in source && source.revision !== undefined ? source.revision : source.kind;
}

/** What a run deploys: the program, and the configuration of the stack. */
function contentOf(request: PrepareRequest, stack: string): string {
  const config = request.stacks.find(({ name }) => name === stack)?.config ?? [];
  const values = config.map(({ key, value }) => `${key}=${"value" in value ? String(value.value) : ""}`).toSorted();
  return [revisionOf(request), ...values].join(" ");
}
