/**
 * A run from its first command to its result.
 *
 *   launch → follow its events → exit ─ succeeded ─→ next command, or the result
 *                                     ├ locked by a dead run of this workspace → remove the lock → launch again, once
 *                                     ├ killed after a timeout or a cancellation → remove its lock → the result
 *                                     └ failed, cancelled, interrupted ─→ the result
 */
import { stat } from "node:fs/promises";
import { type RunEvent, type RunProcess } from "@pko/records";
import { errorMessage, type RunError, type RunResult } from "@pko/rpc";
import { updateMark } from "../pulumi/cloud/own-update.ts";
import { commandsFor, isDriftCheck, type RunStep } from "../pulumi/operation.ts";
import { bounded } from "../system/clean-text.ts";
import type { EventLog } from "./event-log.ts";
import { followLaunch, isSuccess, type Followed } from "./follow.ts";
import { adopt, launch, type Launched } from "./launcher.ts";
import { OwnLocks } from "./own-locks.ts";
import { PrintedOutput, rawText } from "./printed-output.ts";
import type { RunContext } from "./run-context.ts";
import { RunFailures } from "./run-failure.ts";
import type { Cancellation, RunFolder, RunRecord } from "./run-folder.ts";
import { RunPlan } from "./run-plan.ts";
import { failedWith, RunResults } from "./run-result.ts";
import { signInProblem, versionProblem } from "./start-problems.ts";
import { RunTimeouts } from "./timeouts.ts";

/** A step that failed or was cancelled before its command started. */
interface Unstarted {
  readonly unstarted: true;
  /** Absent if the run was cancelled. */
  readonly error?: RunError;
}

const cancellationNotices: Readonly<Record<Cancellation, string>> = {
  asked: "cancelling the run",
  stopping: "the workspace is stopping",
  total: "cancelling the run, because it exceeded its timeout",
  silence: "cancelling the run, because it has been silent for too long",
};

const pollMs = 100;
/** The longest interval of checks of the timeouts, which have whole seconds. */
const timeoutPollMs = 500;
/** The exit code of the CLI if it finds changes although none are expected. */
const changesFound = 7;

export class ActiveRun {
  readonly folder: RunFolder;
  readonly events: EventLog;
  #record: RunRecord;
  readonly #context: RunContext;
  readonly #plan: RunPlan;
  readonly #output: PrintedOutput;
  readonly #locks: OwnLocks;
  readonly #failures: RunFailures;
  readonly #results: RunResults;
  #launched: Launched | undefined;
  #killTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #timeouts: RunTimeouts;
  /** The grace period after which a command was killed. */
  #killedAfterSeconds: number | undefined;
  /** From here on, its record and its events do not change. */
  #hasEnded = false;

  constructor(folder: RunFolder, record: RunRecord, parts: { events: EventLog; context: RunContext }) {
    this.folder = folder;
    this.#record = record;
    const { events, context } = parts;
    this.events = events;
    this.#context = context;
    this.#timeouts = new RunTimeouts(record.timeouts ?? {}, Date.parse(record.startedAt));
    const { operation, ready: target } = record;
    const plan = new RunPlan(folder, { ...context, operation, target });
    const output = new PrintedOutput(folder, record, context);
    const notify = (message: string) => this.#emit({ kind: "notice", message });
    this.#plan = plan;
    this.#output = output;
    this.#locks = new OwnLocks({ ...context, runId: folder.runId, notify });
    this.#failures = new RunFailures({ context, events, output, plan });
    this.#results = new RunResults({ context, events, output, folder });
  }

  /** Runs all commands and returns the result. Never throws. */
  async run(): Promise<RunResult> {
    let result: RunResult;
    try {
      result = await this.#runSteps();
    } catch (error) {
      await this.#stopLaunched();
      this.#context.log.error("unexpected error in run", { run: this.folder.runId, error });
      const message = this.#output.clean(errorMessage(error));
      result = await this.#failed({ class: "other", message: bounded(message), lines: [] });
    }
    this.#hasEnded = true;
    clearTimeout(this.#killTimer);
    await this.events.close().catch(() => undefined);
    await this.folder.removeEngineLogs().catch(() => undefined);
    await this.folder.removePlanFiles().catch(() => undefined);
    return result;
  }

  /** Sends SIGINT now, and SIGKILL to all remaining processes after the grace period. A second call may shorten it. */
  async cancel(reason: Cancellation, graceSeconds = this.#context.graceSeconds): Promise<void> {
    if (this.#hasEnded) return;
    if (!this.#record.cancelled) {
      this.#record = { ...this.#record, cancelled: reason };
      this.#launched?.interrupt();
      await this.#emit({ kind: "notice", message: cancellationNotices[reason] });
    }
    clearTimeout(this.#killTimer);
    this.#killTimer = setTimeout(() => this.#kill(graceSeconds), graceSeconds * 1000);
    try {
      await this.folder.writeRecord(this.#record);
    } catch (error) {
      // For example a full disk. The run is cancelled anyway; only a restarted agent would not know about it.
      this.#context.log.warn("cannot store the cancellation", { run: this.folder.runId, error });
    }
  }

  #kill(graceSeconds: number): void {
    if (!this.#launched) return;
    this.#killedAfterSeconds = graceSeconds;
    this.#launched.kill();
  }

  /** After an error of the agent: lets the CLI stop gracefully instead of killing it. */
  async #stopLaunched(): Promise<void> {
    const launched = this.#launched;
    if (!launched) return;
    launched.interrupt();
    const timer = setTimeout(() => launched.kill(), this.#context.graceSeconds * 1000);
    await launched.ended;
    clearTimeout(timer);
  }

  async #runSteps(): Promise<RunResult> {
    const tooLow = await versionProblem(this.#context.cli, this.#record.operation);
    if (tooLow) return await this.#failed(tooLow);
    const unplanned = await this.#beginPlan();
    if (unplanned) return await this.#failed(unplanned);
    let followed: Followed | undefined;
    for (let index = Math.max(0, this.#lastStep()); this.#step(index); index += 1) {
      const outcome = await this.#runStep(index);
      if ("unstarted" in outcome) return await this.#failed(outcome.error ?? (await this.#explain(undefined)));
      followed = outcome;
      if (!isSuccess(followed) && !(await this.#hasFoundDrift(followed))) {
        return await this.#failed(await this.#explain(followed), followed);
      }
      const differs = this.#step(index)?.kind === "check" ? await this.#plan.checkDestroy(this.#lastLaunch) : undefined;
      if (differs) return await this.#failed(differs, followed);
    }
    const plan = await this.#plan.keep(this.#lastLaunch);
    if (plan && !plan.ok) return await this.#failed(plan.error, followed);
    const succeeded = { outcome: "succeeded", ...(plan && { plan: plan.summary }) } as const;
    return await this.#results.create(succeeded, { record: this.#record, followed });
  }

  /** Only once: an adopted run has passed it before its first command. */
  async #beginPlan(): Promise<RunError | undefined> {
    const { launches, cancelled } = this.#record;
    if (!this.#plan.isUsed || launches.length > 0 || cancelled) return undefined;
    return (await signInProblem(this.#context.cli, this.#record.ready.backend)) ?? (await this.#plan.begin());
  }

  get #lastLaunch(): number {
    return this.#record.launches.length - 1;
  }

  /** The CLI fails if it finds drift; older ones with the exit code of any other failure. */
  async #hasFoundDrift({ end, drift }: Followed): Promise<boolean> {
    if (!drift || this.#record.cancelled || end.kind !== "exited") return false;
    const printed = rawText(await this.#output.read(this.#lastLaunch));
    return end.code === changesFound || printed.includes("error: no changes were expected");
  }

  /** A step of the operation, as the next command to launch. */
  #step(index: number): RunStep | undefined {
    const { operation, ready, launches } = this.#record;
    const eventLog = this.folder.engineLog(launches.length);
    const { planFile } = this.folder;
    const { policyPacks = [] } = this.#context;
    const { stack, settings } = ready;
    return commandsFor(operation, { stack, settings, eventLog, planFile, policyPacks })[index];
  }

  async #runStep(index: number): Promise<Followed | Unstarted> {
    // An earlier agent process may have started it.
    let followed = index === this.#lastStep() ? await this.#follow(this.#adoptLast()) : await this.#start(index);
    if ("unstarted" in followed || isSuccess(followed)) return followed;
    if (this.#killedAfterSeconds !== undefined) await this.#locks.release(this.#record);
    else if (await this.#removeOwnLock()) followed = await this.#start(index);
    return followed;
  }

  async #removeOwnLock(): Promise<boolean> {
    const printed = await this.#output.read(this.#lastLaunch);
    return await this.#locks.removeStale(this.#record, rawText(printed));
  }

  async #start(index: number): Promise<Followed | Unstarted> {
    const launchIndex = this.#record.launches.length;
    const step = this.#step(index);
    if (!step) return { unstarted: true };
    if (this.#timeouts.isTotalExceeded) await this.cancel("total");
    if (this.#record.cancelled) return { unstarted: true };
    const problem = await signInProblem(this.#context.cli, this.#record.ready.backend);
    if (problem) return { unstarted: true, error: problem };
    await this.#emit({ kind: "step", name: step.name });
    const { cli } = this.#context;
    const startedAt = new Date().toISOString();
    const launching = await launch({
      cli,
      args: step.args,
      cwd: this.#record.ready.projectFolder,
      folder: this.folder,
      launch: launchIndex,
      env: this.#variables(),
    });
    if (!launching.ok) throw new Error(`the CLI cannot be started: ${launching.problem}`);
    this.#launched = launching.launched;
    const { identity } = launching.launched;
    this.#record = { ...this.#record, launches: [...this.#record.launches, { step: index, ...identity, startedAt }] };
    await this.folder.writeRecord(this.#record);
    // The run may have been cancelled since the check above.
    if (this.#isCancelled()) launching.launched.interrupt();
    return await this.#follow(launching.launched);
  }

  /** Of this run only: a plan is not bound to them. */
  #variables(): Record<string, string> {
    const { workspaceUid } = this.#context;
    const { traceparent } = this.#record.origin ?? {};
    return {
      ...(workspaceUid !== undefined && updateMark(workspaceUid, this.folder.runId)),
      ...(traceparent !== undefined && { TRACEPARENT: traceparent }),
    };
  }

  #adoptLast(): Launched {
    const last = this.#record.launches.at(-1);
    if (!last) throw new Error("there is no process to adopt");
    this.#launched = adopt(last, pollMs);
    if (this.#record.cancelled) void this.cancel(this.#record.cancelled);
    return this.#launched;
  }

  async #follow(launched: Launched): Promise<Followed> {
    const index = this.#record.launches.length - 1;
    const isConfirmed = this.#record.launches[index]?.holder !== undefined;
    this.#output.logHiddenFile(index);
    void this.#watchTimeouts(launched, index);
    const followed = await followLaunch(launched, {
      folder: this.folder,
      launch: index,
      shows: this.#output.shows,
      events: this.events,
      kind: this.#step(this.#lastStep())?.kind ?? "change",
      isDriftCheck: isDriftCheck(this.#record.operation),
      isProgram: this.#record.ready.isProgram === true,
      pollMs,
      clean: (text) => this.#output.clean(text),
      log: this.#context.log,
      ...(!isConfirmed && { onLock: () => this.#confirm(index) }),
    });
    this.#launched = undefined;
    return followed;
  }

  async #watchTimeouts({ over }: Launched, index: number): Promise<void> {
    const startedAt = Date.parse(this.#record.launches[index]?.startedAt ?? this.#record.startedAt);
    const files = [this.folder.stdout(index), this.folder.stderr(index), this.folder.engineLog(index)];
    const exceeded = await this.#timeouts.exceededBy({ startedAt, files, over, pollMs: timeoutPollMs });
    if (exceeded && !this.#record.cancelled) await this.cancel(exceeded);
  }

  /** Stores the lock's holder for later agents of this pod, and sends it to the operator for agents of later pods. */
  async #confirm(index: number): Promise<void> {
    const launch = this.#record.launches[index];
    if (launch?.startedAt === undefined) return;
    const { pid, startedAt } = launch;
    // The time of the last output, because an agent that adopts a run may get here long after the process died.
    const { mtime } = await stat(this.folder.stdout(index));
    const holder: RunProcess = { hostname: this.#context.hostname, pid, startedAt, lockedAt: mtime.toISOString() };
    this.#record = { ...this.#record, launches: this.#record.launches.with(index, { ...launch, holder }) };
    await this.folder.writeRecord(this.#record);
    const message = `the CLI has locked the stack (PID ${pid} on ${holder.hostname})`;
    await this.#emit({ kind: "notice", message, process: holder });
  }

  async #emit(event: RunEvent): Promise<void> {
    await this.events.append(event);
  }

  async #explain(followed: Followed | undefined): Promise<RunError> {
    return await this.#failures.explain({
      record: this.#record,
      followed,
      killedAfterSeconds: this.#killedAfterSeconds,
    });
  }

  async #failed(error: RunError, followed?: Followed): Promise<RunResult> {
    return await this.#results.create(failedWith(error), { record: this.#record, followed });
  }

  #lastStep(): number {
    return this.#record.launches.at(-1)?.step ?? -1;
  }

  #isCancelled(): boolean {
    return this.#record.cancelled !== undefined;
  }
}
