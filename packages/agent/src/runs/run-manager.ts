/** The runs of this workspace: one at a time, identified by ID, including those of an earlier agent process. */
import { setTimeout as sleep } from "node:timers/promises";
import { noProgress, runFinished, runStarted } from "@pko/records";
import {
  fail,
  maxLineBytes,
  maxPlanPartChars,
  succeed,
  type CancelRequest,
  type CancelResult,
  type OutputsMessage,
  type Operation,
  type Output,
  type PlanMessage,
  type RecordResult,
  type RunId,
  type RunResult,
  type SealedPlan,
  type StartRequest,
  type StartResult,
  type WatchMessage,
  type WatchRequest,
} from "@pko/rpc";
import type { Answer, Messages } from "@pko/rpc/server";
import { traceIdIn } from "@pko/process/traces";
import { cleanFailure, done, type Outcome } from "../outcome.ts";
import type { PulumiCli } from "../pulumi/cli.ts";
import { isPreview } from "../pulumi/operation.ts";
import { queryOutputs } from "../pulumi/outputs.ts";
import { buildRecord } from "../record/build-record.ts";
import { inputDigests } from "../record/input-digests.ts";
import { truncateName } from "../system/clean-text.ts";
import { removeFolder } from "../system/files.ts";
import type { Log } from "../system/log.ts";
import { Mutex } from "../system/mutex.ts";
import type { RunTarget } from "../workspace/state.ts";
import type { FoundTarget } from "../workspace/target.ts";
import { ActiveRun } from "./active-run.ts";
import { EventLog, EventReader } from "./event-log.ts";
import { listRuns, RunFolder, type Launch, type RunRecord } from "./run-folder.ts";

interface RunManagerOptions {
  readonly runs: string;
  readonly cli: PulumiCli;
  readonly log: Log;
  readonly hostname: string;
  /** The pod's namespace. */
  readonly namespace: string | undefined;
  readonly graceSeconds: number;
  readonly agentVersion: string;
  readonly workspaceUid: string | undefined;
  /** The image of the pod's container. */
  readonly image?: string | undefined;
  /** Folders of policy packs that every preview and update must satisfy. */
  readonly policyPacks?: readonly string[];
  readonly targetFor: (request: StartRequest) => Promise<FoundTarget>;
  /** Whether this agent process has prepared the workspace and therefore knows the secrets that runs may print. */
  readonly knowsSecrets: () => boolean;
  /** Called before a result becomes visible, so that the workspace's state is up to date by then. */
  readonly onResult: (record: RunRecord, result: RunResult) => Promise<void>;
}

/** Older finished runs are deleted. */
const maxKeptRuns = 20;
/** A request that was sent before a run was reported as unknown does not arrive after this many others. */
const maxRememberedUnknown = 1000;
/** More than fits into a Secret, and less than a line of the stream in any encoding. */
const maxOutputChars = maxLineBytes / 4;
const maxNameChars = 1024;
/** The minimum interval of progress messages; events are sent immediately. */
const progressMs = 500;

/** The operator retries `unprepared`, but not `invalidRequest`. */
const errorCodes = { unprepared: "unprepared", impossible: "invalidRequest" } as const;

const outdatedStart =
  "the request to start this run is outdated: the agent has reported before that the run does not exist";

interface EarlierRuns {
  readonly earlierLaunches: readonly Launch[];
  readonly mayHavePending: boolean;
}

interface Current {
  readonly run: ActiveRun;
  readonly record: RunRecord;
  readonly finished: Promise<RunResult>;
}

export class RunManager {
  readonly #options: RunManagerOptions;
  #current: Current | undefined;
  readonly #mutex = new Mutex();
  /** Results that could not be written to disk. They are lost when the agent exits. */
  readonly #unwritten = new Map<RunId, RunResult>();
  /** Runs that were reported as unknown: their Updates have ended, so they must not start. */
  readonly #reportedUnknown = new Set<RunId>();
  #stopping = false;

  constructor(options: RunManagerOptions) {
    this.#options = options;
  }

  /** A run whose result is visible is not active, so this waits until it has finished. */
  async activeRun(): Promise<RunId | undefined> {
    const current = this.#current;
    if (current && (await this.#findResult(current.run.folder))) await current.finished;
    return this.#current?.record.runId;
  }

  /** Continues after an earlier agent process: follows a run that is alive, and writes the result of a dead one. */
  async recover(): Promise<void> {
    const unfinished: { readonly folder: RunFolder; readonly record: RunRecord }[] = [];
    for (const folder of await listRuns(this.#options.runs)) {
      if (await folder.readResult()) continue;
      const record = await folder.readRecord();
      // Without a record nothing was started, and no request was answered.
      if (record) unfinished.push({ folder, record });
      else await removeFolder(folder.path);
    }
    for (const [index, { folder, record }] of unfinished.entries()) {
      this.#logOf(record).warn("continuing a run of an earlier agent process", { run: record.runId });
      const isLast = index === unfinished.length - 1;
      // Runs are sequential, so all but the last ended before the last one started.
      const current = await this.#launch(folder, isLast ? record : { ...record, cancelled: "stopping" });
      if (!isLast) await current.finished;
    }
  }

  /** The state of a known run. Only the ID counts, because an operator of another version may send other fields. */
  async attach(runId: RunId): Promise<Awaited<Answer<StartResult>> | undefined> {
    return await this.#mutex.run(() => this.#known(runId));
  }

  /** Sequential, so that two requests with the same ID do not start two runs. */
  async start(request: StartRequest): Answer<StartResult> {
    return await this.#mutex.run(() => this.#start(request));
  }

  async #start(request: StartRequest): Answer<StartResult> {
    const known = await this.#known(request.runId);
    if (known) return known;
    if (this.#reportedUnknown.has(request.runId)) return fail("invalidRequest", outdatedStart);
    if (this.#stopping) return fail("stopping", "the workspace is stopping");
    const activeRun = await this.activeRun();
    if (activeRun !== undefined) {
      return { ok: false, error: { code: "busy", message: "another run is active", activeRun } };
    }
    const found = await this.#options.targetFor(request);
    if (found.kind !== "found") return fail(errorCodes[found.kind], found.message);
    const { stack: _, preparation: __, operation, ...rest } = request;
    const folder = new RunFolder(this.#options.runs, request.runId);
    const startedAt = new Date().toISOString();
    const inputs = await this.#inputDigests(found.target);
    const record = { ...rest, operation: withoutPlan(operation), ready: found.target, inputs, startedAt, launches: [] };
    await folder.create(record, appliedPlan(operation));
    await this.#launch(folder, record);
    const { target } = found;
    this.#logOf(record).info(runStarted, {
      run: request.runId,
      pulumiStack: target.stack,
      operation: request.operation.kind,
    });
    await this.#deleteOldRuns();
    return succeed({ state: "started", lastSeq: 0, progress: noProgress });
  }

  /** Only for people who compare runs, so it must not prevent one. */
  async #inputDigests(target: RunTarget): Promise<Record<string, string>> {
    try {
      return await inputDigests(target, this.#options);
    } catch (error) {
      this.#options.log.warn("cannot read the inputs of the run", { error });
      return {};
    }
  }

  /** The answer for a run that exists. */
  async #known(runId: RunId): Promise<Awaited<Answer<StartResult>> | undefined> {
    const folder = new RunFolder(this.#options.runs, runId);
    if (!(await folder.readRecord())) return undefined;
    if (this.#current?.record.runId === runId) {
      const { lastSeq, progress } = this.#current.run.events;
      return succeed({ state: "running", lastSeq, progress });
    }
    const result = await this.#findResult(folder);
    if (!result) return fail("internal", "the run has no result and is not running");
    const events = await EventLog.open(folder);
    return succeed({ state: "finished", lastSeq: events.lastSeq, progress: result.progress, result });
  }

  async #launch(folder: RunFolder, record: RunRecord): Promise<Current> {
    const { cli, hostname, namespace, graceSeconds, workspaceUid, image, policyPacks } = this.#options;
    const log = this.#logOf(record);
    const context = {
      cli,
      log,
      hostname,
      namespace,
      ...(await this.#earlierRuns(record)),
      graceSeconds,
      workspaceUid,
      image,
      ...(policyPacks && { policyPacks }),
      knowsSecrets: this.#options.knowsSecrets(),
    };
    const events = await EventLog.open(folder, (event) => log.event(record.runId, event));
    const run = new ActiveRun(folder, record, { events, context });
    const current = { run, record, finished: this.#finish(run, record) };
    this.#current = current;
    return current;
  }

  /** What earlier runs of the same stack left behind: only their commands can have acquired its lock. */
  async #earlierRuns({ runId, ready }: RunRecord): Promise<EarlierRuns> {
    const earlierLaunches: Launch[] = [];
    let mayHavePending = false;
    for (const folder of await listRuns(this.#options.runs)) {
      const record = folder.runId === runId ? undefined : await folder.readRecord();
      if (record?.ready.stack !== ready.stack || record.ready.project.name !== ready.project.name) continue;
      earlierLaunches.push(...record.launches);
      // Of the last one that could change the state.
      if (!isPreview(record.operation)) mayHavePending = (await folder.readResult())?.pendingOperations !== undefined;
    }
    return { earlierLaunches, mayHavePending };
  }

  /** Never rejects, because callers may not await it. */
  async #finish(run: ActiveRun, record: RunRecord): Promise<RunResult> {
    const { onResult } = this.#options;
    const log = this.#logOf(record);
    const result = await run.run();
    try {
      await onResult(record, result);
      // Last, because the next run may start as soon as the result is visible.
      await run.folder.writeResult(result);
    } catch (error) {
      log.error("cannot store the result", { run: record.runId, error });
      this.#unwritten.set(record.runId, result);
    }
    this.#current = undefined;
    run.events.wake();
    const errorClass = result.error?.class;
    log.info(runFinished, { run: record.runId, outcome: result.outcome, ...(errorClass && { errorClass }) });
    return result;
  }

  /** With the keys that the operator's lines about the same Update have. */
  #logOf({ origin }: Pick<RunRecord, "origin">): Log {
    const { stack, update, traceparent } = origin ?? {};
    return this.#options.log.child({ stack, update, traceID: traceIdIn(traceparent) });
  }

  async #findResult(folder: RunFolder): Promise<RunResult | undefined> {
    return this.#unwritten.get(folder.runId) ?? (await folder.readResult());
  }

  async watch(request: WatchRequest, signal: AbortSignal): Messages<WatchMessage> {
    const folder = new RunFolder(this.#options.runs, request.runId);
    if (!(await this.#mutex.run(() => this.#exists(folder)))) return fail("notFound", "there is no such run");
    return succeed(this.#follow(folder, request.fromSeq, signal));
  }

  async *#follow(folder: RunFolder, fromSeq: number, signal: AbortSignal): AsyncGenerator<WatchMessage> {
    const reader = new EventReader(folder);
    let lastSeq = 0;
    let progressSeq = 0;
    let progressTime = -Infinity;
    while (!signal.aborted) {
      const events = this.#current?.record.runId === folder.runId ? this.#current.run.events : undefined;
      const grown = events?.grown;
      const result = await this.#findResult(folder);
      for await (const { type, seq, time, event } of reader.more()) {
        lastSeq = seq;
        if (seq >= fromSeq) yield { type, seq, time, event };
      }
      if (result) {
        yield { type: "result", seq: lastSeq, result };
        return;
      }
      if (!events || !grown) throw new Error("the run has no result and is not running");
      const isDue = performance.now() - progressTime >= progressMs;
      if (isDue && progressSeq !== events.lastSeq) {
        progressSeq = events.lastSeq;
        progressTime = performance.now();
        yield { type: "progress", seq: progressSeq, progress: events.progress };
      }
      await Promise.race(progressSeq === events.lastSeq ? [grown] : [grown, sleep(progressMs)]);
    }
  }

  /** Sequential, so that a run that is being started is cancelled as well. */
  async cancel(request: CancelRequest): Answer<CancelResult> {
    return await this.#mutex.run(() => this.#cancel(request));
  }

  async #cancel({ runId, graceSeconds }: CancelRequest): Answer<CancelResult> {
    if (this.#current?.record.runId === runId) {
      await this.#current.run.cancel("asked", graceSeconds);
      return succeed({ state: "cancelling" });
    }
    const exists = await this.#exists(new RunFolder(this.#options.runs, runId));
    return exists ? succeed({ state: "finished" }) : fail("notFound", "there is no such run");
  }

  /**
   * Without the run, the operator ends its Update, and creates another one. A request to start the run that arrives after this must not start it:
   * nobody would follow it.
   */
  async #exists(folder: RunFolder): Promise<boolean> {
    const exists = (await folder.readRecord()) !== undefined;
    if (!exists) {
      this.#reportedUnknown.add(folder.runId);
      const [oldest] = this.#reportedUnknown;
      if (oldest !== undefined && this.#reportedUnknown.size > maxRememberedUnknown)
        this.#reportedUnknown.delete(oldest);
    }
    return exists;
  }

  async outputs(runId: RunId, signal: AbortSignal): Messages<OutputsMessage> {
    const folder = new RunFolder(this.#options.runs, runId);
    const [record, result] = [await folder.readRecord(), await this.#findResult(folder)];
    if (!record) return fail("notFound", "there is no such run");
    if (result?.outcome !== "succeeded")
      return fail("unprepared", "the run has no outputs, because it has not succeeded");
    const outputs = record.operation.kind === "destroy" ? done([]) : await this.#readOutputs(folder, record, signal);
    if (!outputs.ok) return fail("failed", cleanFailure(outputs.failure, this.#options.cli.redactor).message);
    const large = outputs.value.find(
      ({ name, value }) => name.length > maxNameChars || (JSON.stringify(value)?.length ?? 0) > maxOutputChars,
    );
    if (large) {
      const name = truncateName(large.name, 100);
      return fail(
        "tooLarge",
        `the output ${name} is too large: its value may have ${maxOutputChars} characters and its name ${maxNameChars}`,
      );
    }
    return succeed(outputMessages(outputs.value));
  }

  /** The plan that a run made, in parts. */
  async plan(runId: RunId): Messages<PlanMessage> {
    const folder = new RunFolder(this.#options.runs, runId);
    const [record, result] = [await folder.readRecord(), await this.#findResult(folder)];
    if (!record) return fail("notFound", "there is no such run");
    const plan = result?.outcome === "succeeded" ? await folder.readPlan() : undefined;
    return plan ? succeed(planMessages(plan)) : fail("unprepared", "the run has no plan");
  }

  /** What the operator keeps of a finished run. Built for each request, so that the end of the run does not wait for it. */
  async record(runId: RunId): Answer<RecordResult> {
    const folder = new RunFolder(this.#options.runs, runId);
    const [record, result] = [await folder.readRecord(), await this.#findResult(folder)];
    if (!record) return fail("notFound", "there is no such run");
    if (!result) return fail("unprepared", "the run has no record, because it is active");
    const { encoded, omitted } = await buildRecord(folder, { operation: record.operation, outcome: result.outcome });
    const { cli, agentVersion } = this.#options;
    const pulumi = cli.knownVersion?.text;
    const versions = { agent: agentVersion, ...(pulumi !== undefined && { pulumi }) };
    return succeed({ content: encoded, omitted, versions, inputs: record.inputs ?? {} });
  }

  async #readOutputs(folder: RunFolder, record: RunRecord, signal: AbortSignal): Promise<Outcome<readonly Output[]>> {
    const known = await folder.readOutputs();
    if (known?.complete) return done(known.outputs);
    const signedIn = await this.#options.cli.signIn({ backend: record.ready.backend, purpose: "command", signal });
    if (!signedIn.ok) return signedIn;
    return await queryOutputs({
      cli: this.#options.cli,
      stack: record.ready.stack,
      folder: record.ready.projectFolder,
      secretNames: known && new Set(known.outputs.flatMap(({ name, secret }) => (secret ? [name] : []))),
      signal,
    });
  }

  /** Interrupts the active run and waits until its result is on disk, before the agent exits. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#mutex.run(async () => undefined);
    const current = this.#current;
    if (!current) return;
    await current.run.cancel("stopping");
    await current.finished;
  }

  async #deleteOldRuns(): Promise<void> {
    const finished = (await listRuns(this.#options.runs)).filter(
      (folder) => folder.runId !== this.#current?.record.runId,
    );
    for (const folder of finished.slice(0, -maxKeptRuns)) await removeFolder(folder.path);
  }
}

async function* outputMessages(outputs: readonly Output[]): AsyncGenerator<OutputsMessage> {
  for (const output of outputs) yield { type: "output", output };
  yield { type: "end", count: outputs.length };
}

async function* planMessages({ digest, content }: SealedPlan): AsyncGenerator<PlanMessage> {
  for (let start = 0; start < content.length; start += maxPlanPartChars) {
    yield { type: "part", content: content.slice(start, start + maxPlanPartChars) };
  }
  yield { type: "end", digest };
}

function appliedPlan(operation: Operation): SealedPlan | undefined {
  return operation.kind === "up" || operation.kind === "destroy" ? operation.applyPlan : undefined;
}

/** The content of a plan is large and is stored in a separate file. */
function withoutPlan(operation: Operation): Operation {
  if (operation.kind !== "up" && operation.kind !== "destroy") return operation;
  const { applyPlan } = operation;
  return applyPlan ? { ...operation, applyPlan: { ...applyPlan, content: "" } } : operation;
}
