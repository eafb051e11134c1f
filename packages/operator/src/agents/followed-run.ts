/**
 * One run at one agent, from the start request to its outputs.
 *
 *   start ──▶ watch ──▶ outputs ──▶ plan ──▶ record ──▶ finished
 *     │         │          │          │
 *     └─────────┴──────────┴──────────┴─ unreachable, busy, unprepared: the step is retried with backoff
 */
import { addEvent, noProgress } from "@pko/records";
import { errorMessage } from "@pko/rpc";
import type { NumberedEvent, Progress } from "@pko/records";
import type {
  CallError,
  Output,
  RecordResult,
  Reply,
  RunResult,
  SealedPlan,
  StartRequest,
  StartResult,
} from "@pko/rpc";
import type { AgentClient } from "@pko/rpc/client";
import type { WatchUpdate } from "@pko/rpc/watch";

import type { AgentPod, Run } from "./agents.ts";
import { Attempts, defaultBackoff, dial, Waker, type DialOptions } from "./dial.ts";

interface FollowOptions extends DialOptions {
  readonly wake: () => void;
  readonly progressMs?: number;
  /** What the pod has prepared, as far as this process knows. */
  readonly preparation: () => string | undefined;
  /** Called when the agent cannot start the run because its workspace is not prepared for it, or is being prepared. */
  readonly unprepared: () => void;
  /** Called for each event of the run from the first on, also for those before a restart of this process. */
  readonly onEvent?: (event: NumberedEvent) => void;
  readonly failed: (error: unknown) => void;
}

/** Without an operation, the run is only attached to, never started. */
type RunRequest = Pick<StartRequest, "runId"> & Partial<StartRequest>;

/** Where a watch continues, and the progress up to there. */
interface Position {
  nextSeq: number;
  progress: Progress;
  /** The last event that `progress` includes. */
  countedSeq: number;
}

/** What a watch starts from. */
interface StartedRun extends Pick<StartResult, "lastSeq" | "progress" | "result"> {
  /** Why the agent rejected the start. It may still have the run, started by an operator of another version. */
  readonly rejection?: string;
}

/**
 * The run was started before, and its progress is not known: the agent sends it within a second. To request the events since the start
 * would have all of them sent again, of all runs after each restart of the operator.
 */
const attached: StartedRun = { lastSeq: Number.MAX_SAFE_INTEGER - 1, progress: noProgress };

type ErrorClass = "transient" | "busy" | "unprepared" | "notFound" | "mismatch" | "permanent";

const wakeEveryMs = 1_000;
/** A broken connection usually works at the next attempt, so these attempts are not reported. */
const unreportedAttempts = 2;
/** How often reading the outputs or the plan may fail before the run is reported without them. */
const maxFetchFailures = 5;
const maxRecordAttempts = 2;

export class FollowedRun {
  readonly ended: Promise<void>;
  readonly #pod: AgentPod;
  readonly #request: RunRequest;
  readonly #options: FollowOptions;
  readonly #attempts: Attempts;
  readonly #waker: Waker;
  readonly #abort = new AbortController();
  #state: Run = { state: "starting" };
  #mayStart: boolean;
  #cancelling = false;

  constructor(pod: AgentPod, request: RunRequest, options: FollowOptions) {
    this.#pod = pod;
    this.#request = request;
    this.#options = options;
    this.#mayStart = request.operation !== undefined;
    this.#attempts = new Attempts(options);
    this.#waker = new Waker(options.wake, options.progressMs ?? wakeEveryMs, options.clock);
    this.ended = this.#follow();
  }

  get state(): Run {
    return this.#state;
  }

  /** False for a run that the agent has started, or that must not be started. */
  get mayStart(): boolean {
    return this.#mayStart;
  }

  get podUid(): string {
    return this.#pod.uid;
  }

  get podIp(): string {
    return this.#pod.ip;
  }

  isAt(pod: AgentPod): boolean {
    return pod.uid === this.#pod.uid && pod.ip === this.#pod.ip && pod.port === this.#pod.port;
  }

  /** The response to a request that was sent is still awaited: the run that it may have started must be followed. */
  preventStart(): void {
    this.#mayStart = false;
  }

  /** One call is enough: the request is repeated until the agent has received it. */
  cancel(): void {
    if (this.#cancelling) return;
    this.#cancelling = true;
    this.#cancelUntilReceived().catch(this.#options.failed);
  }

  /** Stops following; the run continues. */
  end(): void {
    this.#abort.abort();
    this.#waker.stop();
  }

  async #follow(): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        await this.#followOnce();
        return;
      } catch (error) {
        this.#options.failed(error);
        await this.#unreachable(errorMessage(error));
      }
    }
  }

  async #followOnce(): Promise<void> {
    const started = await this.#start();
    if (!started) return;
    const isKnown = started.result && !this.#options.onEvent;
    const result = isKnown ? started.result : await this.#watch(started);
    if (!result) return;
    const outputs = await this.#outputs(result);
    const plan = outputs && (await this.#plan(result));
    const record = plan && (await this.#record());
    if (record) this.#set({ state: "finished", result, ...outputs, ...plan, ...record });
  }

  /** Undefined if there is nothing to follow. */
  async #start(): Promise<StartedRun | undefined> {
    const { operation, ...rest } = this.#request;
    if (!operation) return attached;
    while (this.#mayStart && !this.#signal.aborted) {
      const request = { ...rest, operation, preparation: this.#options.preparation() ?? "" };
      const reply = await this.#agent.start(request, { signal: this.#signal });
      if (this.#signal.aborted) return undefined;
      if (reply.ok) return this.#started(reply.value);
      const errorClass = classify(reply.error);
      // Started by an operator that encodes the operation differently. Agents of version 1 do not attach to it this way.
      if (errorClass === "mismatch") this.preventStart();
      else if (errorClass === "permanent" && this.#mayStart) return { ...attached, rejection: reply.error.message };
      else await this.#retryLater(errorClass, reply.error);
    }
    return this.#signal.aborted ? undefined : attached;
  }

  #started(started: StartResult): StartResult {
    this.preventStart();
    this.#attempts.reached();
    if (!started.result) this.#set({ state: "running", progress: started.progress });
    return started;
  }

  async #watch(from: StartedRun): Promise<RunResult | undefined> {
    const nextSeq = this.#options.onEvent ? 1 : from.lastSeq + 1;
    const position = { nextSeq, progress: from.progress, countedSeq: from.lastSeq };
    while (!this.#signal.aborted) {
      const end = await this.#watchOnce(position);
      if (!end || this.#signal.aborted) return undefined;
      if (end.type === "result") return end.result;
      if (classify(end.error) === "notFound") {
        const { rejection } = from;
        const code = rejection === undefined ? "notFound" : "other";
        this.#set({ state: "refused", code, message: rejection ?? end.error.message });
        return undefined;
      }
      await this.#unreachable(end.error.message);
    }
    return undefined;
  }

  async #watchOnce(position: Position): Promise<Extract<WatchUpdate, { type: "result" | "lost" }> | undefined> {
    const { runId } = this.#request;
    const { baseMs, capMs } = this.#options.backoff ?? defaultBackoff;
    const watch = { signal: this.#signal, backoffMs: baseMs, maxBackoffMs: capMs };
    for await (const update of this.#agent.watch({ runId, fromSeq: position.nextSeq }, watch)) {
      if (this.#signal.aborted) return undefined;
      switch (update.type) {
        case "event":
        case "progress":
          this.#advance(position, update);
          break;
        case "reconnecting":
          if (update.attempt > unreportedAttempts) this.#setUnreachable(update.error.message);
          break;
        case "result":
        case "lost":
          return update;
      }
    }
    return undefined;
  }

  #advance(position: Position, update: Extract<WatchUpdate, { type: "event" | "progress" }>): void {
    this.#attempts.reached();
    if (update.type === "event") {
      position.nextSeq = update.seq + 1;
      this.#options.onEvent?.(update);
    }
    // A progress message may include events that arrive later.
    if (update.type === "event" && update.seq <= position.countedSeq) return;
    position.progress = update.type === "event" ? addEvent(position.progress, update.event) : update.progress;
    position.countedSeq = update.seq;
    this.#set({ state: "running", progress: position.progress });
  }

  async #outputs(result: RunResult): Promise<{ outputs: readonly Output[]; outputsProblem?: string } | undefined> {
    // A drift check does not change the outputs.
    if (result.outcome !== "succeeded" || result.operation === "destroy" || result.drift) return { outputs: [] };
    const { runId } = this.#request;
    const reply = await this.#fetch(() => this.#agent.outputs({ runId }, { signal: this.#signal }));
    if (!reply) return undefined;
    return reply.ok ? { outputs: reply.value } : { outputs: [], outputsProblem: reply.error.message };
  }

  async #plan({ plan }: RunResult): Promise<{ plan?: SealedPlan; planProblem?: string } | undefined> {
    if (!plan) return {};
    const { runId } = this.#request;
    const reply = await this.#fetch(() => this.#agent.plan({ runId }, { signal: this.#signal }));
    if (!reply) return undefined;
    return reply.ok ? { plan: reply.value } : { planProblem: reply.error.message };
  }

  /** The result waits for one more attempt only, because it is lost if the pod is deleted in the meantime. */
  async #record(): Promise<{ record?: RecordResult; recordProblem?: string } | undefined> {
    const { runId } = this.#request;
    for (let attempt = 1; !this.#signal.aborted; attempt += 1) {
      const reply = await this.#agent.record({ runId }, { signal: this.#signal });
      if (reply.ok) return { record: reply.value };
      if (this.#signal.aborted) return undefined;
      if (reply.error.code === "unknownMethod") return {};
      if (attempt >= maxRecordAttempts) return { recordProblem: reply.error.message };
      await this.#attempts.afterUnreachable(this.#signal);
    }
    return undefined;
  }

  /** Reads a part of the result. An error means that the agent cannot provide it; undefined, that nobody follows the run. */
  async #fetch<T>(call: () => Promise<Reply<T>>): Promise<Reply<T> | undefined> {
    for (let failures = 0; !this.#signal.aborted;) {
      const reply = await call();
      if (reply.ok) return reply;
      if (this.#signal.aborted) return undefined;
      if (isResponse(reply.error)) failures += 1;
      if (failures >= maxFetchFailures || reply.error.code === "tooLarge") return reply;
      await this.#unreachable(reply.error.message);
    }
    return undefined;
  }

  async #cancelUntilReceived(): Promise<void> {
    const attempts = new Attempts(this.#options);
    while (!this.#signal.aborted && this.#state.state !== "finished") {
      const { runId } = this.#request;
      const reply = await this.#agent.cancel({ runId }, { signal: this.#signal });
      if (reply.ok) return;
      // It may not have started yet: a start request may be on its way.
      if (classify(reply.error) === "notFound" && this.#hasBeenRefused()) return;
      await attempts.afterUnreachable(this.#signal);
    }
  }

  /** For good, not until the agent is free. */
  #hasBeenRefused(): boolean {
    const state = this.#state;
    return state.state === "refused" && (state.code === "notFound" || state.code === "other");
  }

  async #retryLater(errorClass: ErrorClass, error: CallError): Promise<void> {
    if (errorClass !== "busy" && errorClass !== "unprepared") return await this.#unreachable(error.message);
    this.#set({ state: "refused", code: errorClass, message: error.message });
    // Without an active run, it is busy with a preparation, which may be that of an outdated request.
    if (error.activeRun === undefined) this.#options.unprepared();
    await this.#attempts.afterRejection(this.#signal);
  }

  async #unreachable(message: string): Promise<void> {
    this.#setUnreachable(message);
    await this.#attempts.afterUnreachable(this.#signal);
  }

  #setUnreachable(message: string): void {
    this.#set({ state: "unreachable", message, sinceMs: this.#attempts.sinceMs });
  }

  get #signal(): AbortSignal {
    return this.#abort.signal;
  }

  get #agent(): AgentClient {
    return dial(this.#options, this.#pod);
  }

  #set(state: Run): void {
    if (this.#signal.aborted) return;
    const before = this.#state;
    this.#state = state;
    if (before.state !== state.state || lockHolder(before) !== lockHolder(state)) this.#waker.now();
    else this.#waker.soon();
  }
}

/** The process that holds the lock: it is recorded without delay, while its pod exists. */
function lockHolder(run: Run): string | undefined {
  return run.state === "running" ? run.progress.process?.startedAt : undefined;
}

/** The agent was reached and has rejected the request. */
function isResponse({ code }: CallError): boolean {
  return !["unreachable", "untrusted", "deadline", "aborted", "stopping"].includes(code);
}

const errorClasses: Readonly<Record<CallError["code"], ErrorClass>> = {
  busy: "busy",
  unprepared: "unprepared",
  notFound: "notFound",
  runMismatch: "mismatch",
  invalidRequest: "permanent",
  unknownMethod: "permanent",
  tooLarge: "permanent",
  unsupported: "permanent",
  unreachable: "transient",
  untrusted: "transient",
  deadline: "transient",
  aborted: "transient",
  protocol: "transient",
  stopping: "transient",
  failed: "transient",
  internal: "transient",
};

const classify = ({ code }: CallError): ErrorClass => errorClasses[code];
