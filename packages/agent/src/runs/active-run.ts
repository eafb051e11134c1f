/**
 * A run from its first command to its result.
 *
 *   launch → follow its events → exit ─ succeeded ─→ next command, or the result
 *                                     ├ locked by a dead run of this workspace → remove the lock → launch again, once
 *                                     ├ killed after a timeout or a cancellation → remove its lock → the result
 *                                     └ failed, cancelled, interrupted ─→ the result
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import {
  errorMessage,
  maxOutputTailChars,
  type PendingOperation,
  type RunError,
  type RunEvent,
  type RunProcess,
  type RunResult,
} from "@pko/rpc";
import type { PulumiCli } from "../pulumi/cli.ts";
import { cloudUrl } from "../pulumi/cloud/backend.ts";
import { cancelOwnUpdate, updateMark } from "../pulumi/cloud/own-update.ts";
import { classify } from "../pulumi/explain.ts";
import { withoutPlanValues } from "../plans/refusal.ts";
import { confirmedProcesses, describeLocks, isAllStale, parseLockReport, type LockReport } from "../pulumi/locks.ts";
import { readPendingOperations } from "../pulumi/pending-operations.ts";
import { commandsFor, isDriftCheck, isLogShown, isPreview, isStackRemoved, type RunStep } from "../pulumi/operation.ts";
import { quoteProgram } from "../pulumi/program-lines.ts";
import { explainRun, type Explained, type RunEnd } from "../pulumi/run-error.ts";
import { checkVersion } from "../pulumi/version.ts";
import { cleanFailure } from "../outcome.ts";
import { bounded, truncateName, joinClean, lastChars, cleanText, type Clean } from "../system/clean-text.ts";
import { readIfExists, readTail, type Tail } from "../system/files.ts";
import type { Log } from "../system/log.ts";
import { withoutColors } from "../system/redact.ts";
import { isAlive } from "../system/processes.ts";
import type { EventLog } from "./event-log.ts";
import { followLaunch, isSuccess, type Followed, type Shows } from "./follow.ts";
import { adopt, launch, type Launched } from "./launcher.ts";
import type { Cancellation, Launch, RunFolder, RunRecord } from "./run-folder.ts";
import { appliedDigest, RunPlan } from "./run-plan.ts";
import { RunTimeouts } from "./timeouts.ts";

interface RunContext {
  readonly cli: PulumiCli;
  readonly log: Log;
  readonly hostname: string;
  readonly namespace: string | undefined;
  /** Commands of earlier runs of this stack in this pod. */
  readonly earlierLaunches: readonly Launch[];
  /** An earlier run of this stack in this pod found interrupted operations in the state. */
  readonly mayHavePending: boolean;
  readonly graceSeconds: number;
  readonly workspaceUid: string | undefined;
  readonly image?: string | undefined;
  /** False after a restart of the agent until it prepares the workspace, because it keeps secrets only in memory. */
  readonly knowsSecrets: boolean;
}

/** A step that failed or was cancelled before its command started. */
interface Unstarted {
  readonly unstarted: true;
  /** Absent if the run was cancelled. */
  readonly error?: RunError;
}

const unlistedMessage = cleanText`the stack does not exist, and the operator creates only stacks that the Workspace lists with create: true; add it to the Workspace's spec.stacks, or create it with \`pulumi stack init\``;

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
const tailBytes = 256 * 1024;

export class ActiveRun {
  readonly folder: RunFolder;
  readonly events: EventLog;
  #record: RunRecord;
  readonly #context: RunContext;
  readonly #plan: RunPlan;
  #launched: Launched | undefined;
  #killTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #timeouts: RunTimeouts;
  /** The grace period after which a command was killed. */
  #killedAfterSeconds: number | undefined;

  constructor(folder: RunFolder, record: RunRecord, parts: { events: EventLog; context: RunContext }) {
    this.folder = folder;
    this.#record = record;
    this.events = parts.events;
    this.#context = parts.context;
    this.#timeouts = new RunTimeouts(record.timeouts ?? {}, Date.parse(record.startedAt));
    const { operation, ready: target } = record;
    this.#plan = new RunPlan(folder, { ...parts.context, operation, target });
  }

  /** Runs all commands and returns the result. Never throws. */
  async run(): Promise<RunResult> {
    let result: RunResult;
    try {
      result = await this.#runSteps();
    } catch (error) {
      await this.#stopLaunched();
      const message = this.#clean(errorMessage(error));
      this.#context.log.error("unexpected error in run", { run: this.folder.runId, error: message });
      result = await this.#failed({ class: "other", message: bounded(message), lines: [] });
    }
    clearTimeout(this.#killTimer);
    await this.events.close().catch(() => undefined);
    await this.folder.removeEngineLogs().catch(() => undefined);
    await this.folder.removePlanFiles().catch(() => undefined);
    return result;
  }

  /** Sends SIGINT now, and SIGKILL to all remaining processes after the grace period. A second call may shorten it. */
  async cancel(reason: Cancellation, graceSeconds = this.#context.graceSeconds): Promise<void> {
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
      this.#context.log.warn("cannot store the cancellation", { run: this.folder.runId, error: errorMessage(error) });
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
    const tooLow = await this.#versionProblem();
    if (tooLow) return await this.#failed(tooLow);
    const unplanned = await this.#beginPlan();
    if (unplanned) return await this.#failed(unplanned);
    let followed: Followed | undefined;
    for (let index = Math.max(0, this.#lastStep()); this.#step(index); index += 1) {
      const outcome = await this.#runStep(index);
      if ("unstarted" in outcome) return await this.#failed(outcome.error ?? (await this.#explain(undefined)));
      followed = outcome;
      if (!isSuccess(followed) && !(await this.#hasFoundDrift(followed))) {
        const error = (await this.#explainPlan(followed)) ?? (await this.#explain(followed));
        return await this.#failed(error, followed);
      }
      const differs = this.#step(index)?.kind === "check" ? await this.#plan.checkDestroy(this.#lastLaunch) : undefined;
      if (differs) return await this.#failed(differs, followed);
    }
    const plan = await this.#plan.keep(this.#lastLaunch);
    if (plan && !plan.ok) return await this.#failed(plan.error, followed);
    return await this.#result({ outcome: "succeeded", ...(plan && { plan: plan.summary }) }, followed);
  }

  /** Only once: an adopted run has passed it before its first command. */
  async #beginPlan(): Promise<RunError | undefined> {
    const { launches, cancelled } = this.#record;
    if (!this.#plan.isUsed || launches.length > 0 || cancelled) return undefined;
    return (await this.#signInProblem()) ?? (await this.#plan.begin());
  }

  get #lastLaunch(): number {
    return this.#record.launches.length - 1;
  }

  /** The CLI fails if it finds drift; older ones with the exit code of any other failure. */
  async #hasFoundDrift({ end, drift }: Followed): Promise<boolean> {
    if (!drift || this.#record.cancelled || end.kind !== "exited") return false;
    const printed = rawText(await this.#printed(this.#record.launches.length - 1));
    return end.code === changesFound || printed.includes("error: no changes were expected");
  }

  /** A step of the operation, as the next command to launch. */
  #step(index: number): RunStep | undefined {
    const { operation, ready, launches } = this.#record;
    const eventLog = this.folder.engineLog(launches.length);
    const { planFile } = this.folder;
    return commandsFor(operation, { stack: ready.stack, settings: ready.settings, eventLog, planFile })[index];
  }

  async #runStep(index: number): Promise<Followed | Unstarted> {
    // An earlier agent process may have started it.
    let followed = index === this.#lastStep() ? await this.#follow(this.#adoptLast()) : await this.#start(index);
    if ("unstarted" in followed || isSuccess(followed)) return followed;
    if (this.#killedAfterSeconds !== undefined) await this.#releaseLock();
    else if (await this.#removeOwnLock()) followed = await this.#start(index);
    return followed;
  }

  async #start(index: number): Promise<Followed | Unstarted> {
    const launchIndex = this.#record.launches.length;
    const step = this.#step(index);
    if (!step) return { unstarted: true };
    if (this.#timeouts.isTotalExceeded) await this.cancel("total");
    if (this.#record.cancelled) return { unstarted: true };
    const problem = await this.#signInProblem();
    if (problem) return { unstarted: true, error: problem };
    await this.#emit({ kind: "step", name: step.name });
    const { cli, workspaceUid } = this.#context;
    const startedAt = new Date().toISOString();
    const launching = await launch({
      cli,
      args: step.args,
      cwd: this.#record.ready.projectFolder,
      folder: this.folder,
      launch: launchIndex,
      env: workspaceUid === undefined ? {} : updateMark(workspaceUid, this.folder.runId),
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
    this.#logHiddenFile(index);
    void this.#watchTimeouts(launched, index);
    const followed = await followLaunch(launched, {
      folder: this.folder,
      launch: index,
      shows: this.#shows,
      events: this.events,
      kind: this.#step(this.#lastStep())?.kind ?? "change",
      isDriftCheck: isDriftCheck(this.#record.operation),
      pollMs,
      clean: (text) => this.#clean(text),
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

  get #shows(): Shows {
    if (!this.#context.knowsSecrets) return "nothing";
    return isLogShown(this.#record.operation) ? "everything" : "output";
  }

  /** Logs where users find output that is not in the pod's log. */
  #logHiddenFile(launchIndex: number): void {
    const { log } = this.#context;
    const run = this.folder.runId;
    if (this.#shows === "output") {
      log.info("verbose log is in a file in the pod", { run, file: this.folder.stderr(launchIndex) });
    } else if (this.#shows === "nothing") {
      const reason = "the agent was restarted and does not know all secrets that it should mask";
      log.info("output is in a file in the pod", { run, file: this.folder.stdout(launchIndex), reason });
    }
  }

  /** Replaces output in which secrets cannot be masked. */
  get #withheld(): Clean {
    const folder = this.#clean(this.folder.path);
    return cleanText`the output is not shown, because the workspace's agent was restarted and does not know all secrets that it should mask; read it with kubectl exec in the pod's folder ${folder}`;
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

  /** Removes the lock or update of a dead run of this workspace; true if there was one. */
  async #removeOwnLock(): Promise<boolean> {
    if (this.#record.cancelled) return false;
    const printed = rawText(await this.#printed(this.#record.launches.length - 1));
    const report = parseLockReport(printed);
    if (report) return await this.#removeStaleLocks(report);
    return classify(printed)?.class === "conflict" && (await this.#cancelOwnUpdate());
  }

  /** A command that was killed cannot remove its lock. If this fails, the next run removes it. */
  async #releaseLock(): Promise<void> {
    const { cli, log } = this.#context;
    const { stack, backend, projectFolder } = this.#record.ready;
    if (this.#record.cancelled === "stopping" || isStackRemoved(this.#record.operation)) return;
    try {
      if (cloudUrl(await cli.environment(), backend) !== undefined) {
        await this.#cancelOwnUpdate();
      } else if (this.#record.launches.at(-1)?.holder) {
        // Changes nothing, because the stack exists. The CLI checks for locks first and reports them.
        const end = await cli.run({ args: ["stack", "init", stack, "--no-select"], cwd: projectFolder });
        const report = end.kind === "exited" ? parseLockReport(end.stderr) : undefined;
        if (report) await this.#removeStaleLocks(report);
      }
    } catch (error) {
      log.warn("cannot release the lock", { run: this.folder.runId, error: errorMessage(error) });
    }
  }

  async #removeStaleLocks(report: LockReport): Promise<boolean> {
    const { cli, log, earlierLaunches } = this.#context;
    const { launches, lostRuns = [] } = this.#record;
    const dead = [...earlierLaunches, ...launches].filter((launch) => !isAlive(launch));
    const holders = [...dead.flatMap(({ holder }) => holder ?? []), ...confirmedProcesses(lostRuns)];
    if (!isAllStale(report, holders)) return false;
    const { stack, projectFolder } = this.#record.ready;
    const end = await cli.run({ args: ["cancel", "--yes", `--stack=${stack}`], cwd: projectFolder });
    if (end.kind !== "exited" || end.code !== 0) return false;
    const [holder] = report.holders;
    log.info("stale lock removed", { run: this.folder.runId, stack, pid: holder?.pid });
    await this.#emit({
      kind: "notice",
      message: `removed the lock that an interrupted run left behind (PID ${holder?.pid})`,
    });
    return true;
  }

  async #cancelOwnUpdate(): Promise<boolean> {
    const { cli, log, workspaceUid } = this.#context;
    if (workspaceUid === undefined) return false;
    const { stack, backend, project } = this.#record.ready;
    const query = { env: await cli.environment(), backend, workspaceUid, stack, project: project.name };
    const update = await cancelOwnUpdate(query);
    if (update === undefined) return false;
    log.info("stale update cancelled", { run: this.folder.runId, stack, update });
    await this.#emit({
      kind: "notice",
      message: `cancelled the update that an interrupted run left behind (${update})`,
    });
    return true;
  }

  async #signInProblem(): Promise<RunError | undefined> {
    const { cli } = this.#context;
    const signedIn = await cli.signIn({ backend: this.#record.ready.backend, purpose: "run" });
    if (signedIn.ok) return undefined;
    const { reason, message, lines } = cleanFailure(signedIn.failure, cli.redactor);
    return { class: reason === "invalidToken" ? "invalidToken" : "other", message, lines };
  }

  async #versionProblem(): Promise<RunError | undefined> {
    const version = await this.#context.cli.version();
    const usable = version.ok ? checkVersion(version.value, this.#record.operation) : version;
    if (usable.ok) return undefined;
    const { reason, message, lines } = cleanFailure(usable.failure, this.#context.cli.redactor);
    return { class: reason === "versionTooLow" ? "versionTooLow" : "other", message, lines };
  }

  async #explain(followed: Followed | undefined): Promise<RunError> {
    const end = followed?.end;
    const printed = await this.#printed(followed ? this.#lastLaunch : -1);
    const error = explainRun({
      exitCode: end?.kind === "exited" ? end.code : undefined,
      signal: end?.kind === "signalled" ? end.signal : undefined,
      cancelled: this.#cancelled,
      lost: followed !== undefined && isLost(followed),
      errorLines: this.#visibleErrors(followed?.errorLines ?? []),
      // Classify the original text, because masking a secret could hide a part that matters.
      known: followed?.known ?? classify(rawText(printed)),
      isPolicyViolated: followed?.isPolicyViolated ?? false,
      hasTokenExpired: this.#context.cli.hasTokenExpired,
      printed: this.#visiblePart(printed),
    });
    if (error.class === "invalidToken") this.#context.cli.signOut();
    const explained = this.#isUnlisted(error) ? { ...error, message: unlistedMessage } : error;
    return await this.#quoteProgram(this.#describeLocks(explained, rawText(printed)));
  }

  get #cancelled(): RunEnd["cancelled"] {
    const { cancelled, timeouts } = this.#record;
    if (cancelled === undefined) return undefined;
    const killed = this.#killedAfterSeconds !== undefined && { killedAfterSeconds: this.#killedAfterSeconds };
    switch (cancelled) {
      case "asked":
      case "stopping":
        return { by: cancelled };
      case "total":
        return { by: cancelled, seconds: timeouts?.totalSeconds ?? 0, ...killed };
      case "silence":
        return { by: cancelled, seconds: timeouts?.silenceSeconds ?? 0, ...killed };
    }
  }

  /** Undefined if the plan is not the reason for the failure. */
  async #explainPlan(followed: Followed): Promise<RunError | undefined> {
    if (this.#isCancelled()) return undefined;
    const printed = rawText(await this.#printed(this.#lastLaunch));
    return this.#plan.explain(followed, printed, this.events.progress);
  }

  #visibleErrors(lines: readonly Clean[]): readonly Clean[] {
    return this.#shows === "nothing" && lines.length > 0 ? [this.#withheld] : lines;
  }

  /** The part of the last command's output that may be shown. */
  #visiblePart([stdout, stderr]: readonly Tail[]): Clean {
    if (!stdout || !stderr) return cleanText``;
    switch (this.#shows) {
      case "everything":
        return this.#cleanAll([stdout, stderr], "\n");
      case "output":
        return this.#cleanAll([stdout, errorsOnly(stderr)], "\n");
      case "nothing":
        return this.#withheld;
    }
  }

  #describeLocks(error: Explained, printed: string): Explained {
    const report = error.class === "conflict" ? parseLockReport(printed) : undefined;
    if (!report) return error;
    const { hostname: pod, namespace } = this.#context;
    const at = { pod, namespace, stack: this.#record.ready.stack };
    return { ...error, message: bounded(this.#clean(describeLocks(report, at))) };
  }

  async #quoteProgram({ class: errorClass, message, lines }: Explained): Promise<RunError> {
    const { project, projectFolder } = this.#record.ready;
    if (project.runtime !== "yaml") return { class: errorClass, message, lines: [...lines] };
    const program = this.#clean((await readIfExists(join(projectFolder, "Pulumi.yaml"))) ?? "");
    const [first = message, ...rest] = quoteProgram([message, ...lines], program).map(bounded);
    return { class: errorClass, message: first, lines: rest };
  }

  async #failed(error: RunError, followed?: Followed): Promise<RunResult> {
    const { class: errorClass } = error;
    const outcome = errorClass === "cancelled" || errorClass === "interrupted" ? errorClass : "failed";
    return await this.#result({ outcome, error }, followed);
  }

  async #result(
    end: Pick<RunResult, "outcome" | "error" | "plan">,
    followed: Followed | undefined,
  ): Promise<RunResult> {
    const { operation, ready, startedAt } = this.#record;
    const names = await this.#storeOutputs(end.outcome, followed);
    const pending = await this.#pendingOperations(end.outcome, followed);
    return {
      ...end,
      operation: operation.kind,
      stack: ready.stack,
      project: ready.project,
      revision: ready.revision,
      startedAt,
      finishedAt: new Date().toISOString(),
      ...(followed?.end.kind === "exited" && { exitCode: followed.end.code }),
      progress: this.events.progress,
      changes: followed?.changes ?? {},
      ...(pending.length > 0 && { pendingOperations: pending }),
      ...(end.outcome === "succeeded" && followed?.drift && { drift: followed.drift }),
      output: await this.#output(),
      ...(names && { outputs: names }),
    };
  }

  /** Read only if there may be some, because reading the state of a large stack takes a while. */
  async #pendingOperations(outcome: RunResult["outcome"], followed: Followed | undefined): Promise<PendingOperation[]> {
    const { cli, log, mayHavePending } = this.#context;
    const { operation, ready, launches } = this.#record;
    const mayHaveSome = outcome !== "succeeded" || mayHavePending || followed?.warnsOfPending;
    if (!mayHaveSome || launches.length === 0 || isPreview(operation) || isStackRemoved(operation)) return [];
    try {
      const { stack, projectFolder: folder, backend } = ready;
      const signedIn = await cli.signIn({ backend, purpose: "command" });
      const file = this.folder.state;
      const pending = signedIn.ok ? await readPendingOperations({ cli, stack, folder, file }) : undefined;
      if (!pending) log.warn("cannot read the pending operations in the state", { run: this.folder.runId });
      return pending ?? [];
    } catch (error) {
      const message = this.#clean(errorMessage(error));
      log.warn("cannot read the pending operations in the state", { run: this.folder.runId, error: message });
      return [];
    }
  }

  async #storeOutputs(outcome: RunResult["outcome"], followed: Followed | undefined): Promise<RunResult["outputs"]> {
    const { operation } = this.#record;
    if (outcome !== "succeeded" || !followed?.outputs || operation.kind === "destroy" || isDriftCheck(operation)) {
      return undefined;
    }
    const { complete, outputs } = followed.outputs;
    // If this fails, the outputs are read from the CLI.
    await this.folder.writeOutputs({ complete, outputs: [...outputs] }).catch(() => undefined);
    return {
      names: outputs.map(({ name }) => truncateName(name, 1024)).slice(0, 4096),
      secretNames: outputs.flatMap(({ name, secret }) => (secret ? [truncateName(name, 1024)] : [])).slice(0, 4096),
    };
  }

  /** The CLI's output in all launches. If it cannot be read, the result has none. */
  async #output(): Promise<RunResult["output"]> {
    try {
      const parts = await Promise.all(
        this.#record.launches.map((_, index) => readTail(this.folder.stdout(index), tailBytes)),
      );
      const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
      if (this.#shows === "nothing") return { tail: this.#withheld, bytes, truncated: true };
      const text = this.#cleanAll(parts, "");
      const tail = lastChars(text, maxOutputTailChars);
      return { tail, bytes, truncated: tail.length < text.length || parts.some((part) => part.isCutAtStart) };
    } catch (error) {
      this.#context.log.warn("cannot read the output", { run: this.folder.runId, error: errorMessage(error) });
      return { tail: "", bytes: 0, truncated: true };
    }
  }

  /** Standard output before standard error. */
  async #printed(launchIndex: number): Promise<readonly Tail[]> {
    if (launchIndex < 0) return [];
    const files = [this.folder.stdout(launchIndex), this.folder.stderr(launchIndex)];
    return await Promise.all(files.map((file) => readTail(file, tailBytes)));
  }

  #isUnlisted({ class: errorClass }: Explained): boolean {
    return errorClass === "stackNotFound" && this.#record.ready.unlisted === true;
  }

  #lastStep(): number {
    return this.#record.launches.at(-1)?.step ?? -1;
  }

  #isCancelled(): boolean {
    return this.#record.cancelled !== undefined;
  }

  #clean(text: string): Clean {
    return this.#context.cli.redactor.clean(this.#withoutValues(text));
  }

  /** If the CLI refuses a plan, it prints values that the redactor does not know. */
  #withoutValues(text: string): string {
    return appliedDigest(this.#record.operation) === undefined ? text : withoutPlanValues(text);
  }

  #cleanAll(parts: readonly Tail[], separator: string): Clean {
    return joinClean(
      parts.map((part) => this.#context.cli.redactor.clean({ ...part, text: this.#withoutValues(part.text) })),
      separator,
    );
  }
}

function isLost({ end, summary }: Followed): boolean {
  return end.kind === "unseen" && summary === undefined;
}

/** The CLI's own errors, without the verbose log. A truncated first line belongs to that log. */
function errorsOnly({ text, bytes, isCutAtStart }: Tail): Tail {
  const lines = withoutColors(text).split("\n");
  const errors = lines.slice(isCutAtStart ? 1 : 0).filter((line) => line.startsWith("error: "));
  return { text: errors.join("\n"), bytes, isCutAtStart: false };
}

/** Unmasked text, only for classification. */
function rawText(parts: readonly Tail[]): string {
  return withoutColors(parts.map(({ text }) => text).join("\n"));
}
