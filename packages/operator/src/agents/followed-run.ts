/**
 * One run at one agent, from the request to start it to its outputs.
 *
 *   start ──▶ watch ──▶ outputs ──▶ finished
 *     │         │          │
 *     └─────────┴──────────┴─ unreachable, busy, unprepared: the same step again, at growing intervals
 */
import { addEvent, assertNever, errorMessage, noProgress } from "@pko/rpc";
import type { CallError, Output, Progress, RunResult, StartRequest, StartResult } from "@pko/rpc";
import type { AgentClient } from "@pko/rpc/client";
import type { WatchUpdate } from "@pko/rpc/watch";

import type { AgentPod, Run } from "./agents.ts";
import { Attempts, defaultBackoff, dial, Waker, type DialOptions } from "./dial.ts";

interface FollowOptions extends DialOptions {
  readonly wake: () => void;
  readonly progressMs?: number;
  readonly unprepared?: () => void;
  readonly failed: (error: unknown) => void;
}

/** Without an operation it is only taken up, never started. */
type RunRequest = Pick<StartRequest, "runId"> & Partial<StartRequest>;

/** Where a watch goes on, and what is known by then. */
interface Position {
  nextSeq: number;
  progress: Progress;
  /** The event up to which `progress` counts. */
  countedSeq: number;
}

/** What a watch begins with. */
interface Begun extends Pick<StartResult, "lastSeq" | "progress" | "result"> {
  /** Why the agent does not start the run. It may have the run all the same: from an operator of another version. */
  readonly refusal?: string;
}

type Fate = "transient" | "busy" | "unprepared" | "notFound" | "mismatch" | "hopeless";

const wakeEveryMs = 1_000;
/** A connection that breaks is usually back at the next attempt: nobody is told of less. */
const quietAttempts = 2;
/** What the outputs may fail for good before the run is reported without them. */
const outputsFailures = 5;

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

  get mayStart(): boolean {
    return this.#mayStart;
  }

  get podUid(): string {
    return this.#pod.uid;
  }

  isAt(pod: AgentPod): boolean {
    return pod.uid === this.#pod.uid && pod.ip === this.#pod.ip && pod.port === this.#pod.port;
  }

  /** A request that has left is still waited for: the run it may have started must not be lost sight of. */
  startNoMore(): void {
    this.#mayStart = false;
  }

  /** Once is enough: asked until the agent has heard it. */
  cancel(): void {
    if (this.#cancelling) return;
    this.#cancelling = true;
    this.#cancelUntilHeard().catch(this.#options.failed);
  }

  /** Follows no more; the run goes on. */
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
    const result = started.result ?? (await this.#watch(started));
    if (!result) return;
    const outputs = await this.#outputs(result);
    if (outputs) this.#set({ state: "finished", result, ...outputs });
  }

  /** Undefined when there is nothing to follow. */
  async #start(): Promise<Begun | undefined> {
    const { operation, ...rest } = this.#request;
    if (!operation) return { lastSeq: 0, progress: noProgress };
    const request = { ...rest, operation };
    while (this.#mayStart && !this.#signal.aborted) {
      const reply = await this.#agent.start(request, { signal: this.#signal });
      if (this.#signal.aborted) return undefined;
      if (reply.ok) return this.#begun(reply.value);
      const fate = fateOf(reply.error);
      // Begun by an operator that put the operation in other words. Agents of version 1 refuse to attach to it this way.
      if (fate === "mismatch") break;
      if (fate === "hopeless") return { lastSeq: 0, progress: noProgress, refusal: reply.error.message };
      await this.#tryLater(fate, reply.error);
    }
    return this.#signal.aborted ? undefined : { lastSeq: 0, progress: noProgress };
  }

  #begun(started: StartResult): StartResult {
    this.#attempts.reached();
    if (!started.result) this.#set({ state: "running", progress: started.progress });
    return started;
  }

  async #watch(from: Begun): Promise<RunResult | undefined> {
    const position = { nextSeq: from.lastSeq + 1, progress: from.progress, countedSeq: from.lastSeq };
    while (!this.#signal.aborted) {
      const end = await this.#watchOnce(position);
      if (!end || this.#signal.aborted) return undefined;
      if (end.type === "result") return end.result;
      if (fateOf(end.error) === "notFound") {
        const { refusal } = from;
        const code = refusal === undefined ? "notFound" : "other";
        this.#set({ state: "refused", code, message: refusal ?? end.error.message });
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
          if (update.attempt > quietAttempts) this.#setUnreachable(update.error.message);
          break;
        case "result":
        case "lost":
          return update;
        default:
          assertNever(update);
      }
    }
    return undefined;
  }

  #advance(position: Position, update: Extract<WatchUpdate, { type: "event" | "progress" }>): void {
    this.#attempts.reached();
    if (update.type === "event") position.nextSeq = update.seq + 1;
    // A progress may run ahead of the events that it counts.
    if (update.type === "event" && update.seq <= position.countedSeq) return;
    position.progress = update.type === "event" ? addEvent(position.progress, update.event) : update.progress;
    position.countedSeq = update.seq;
    this.#set({ state: "running", progress: position.progress });
  }

  async #outputs(result: RunResult): Promise<{ outputs: readonly Output[]; outputsProblem?: string } | undefined> {
    if (result.outcome !== "succeeded" || result.operation === "destroy") return { outputs: [] };
    const { runId } = this.#request;
    for (let failures = 0; !this.#signal.aborted;) {
      const reply = await this.#agent.outputs({ runId }, { signal: this.#signal });
      if (reply.ok) return { outputs: reply.value };
      if (this.#signal.aborted) return undefined;
      if (isAnswer(reply.error)) failures += 1;
      if (failures >= outputsFailures || reply.error.code === "tooLarge") {
        return { outputs: [], outputsProblem: reply.error.message };
      }
      await this.#unreachable(reply.error.message);
    }
    return undefined;
  }

  async #cancelUntilHeard(): Promise<void> {
    const attempts = new Attempts(this.#options);
    while (!this.#signal.aborted && this.#state.state !== "finished") {
      const { runId } = this.#request;
      const reply = await this.#agent.cancel({ runId }, { signal: this.#signal });
      if (reply.ok) return;
      // Not begun yet, perhaps: a request to start it may be on its way.
      if (fateOf(reply.error) === "notFound" && this.#state.state === "refused") return;
      await attempts.afterUnreachable(this.#signal);
    }
  }

  async #tryLater(fate: Fate, error: CallError): Promise<void> {
    if (fate !== "busy" && fate !== "unprepared") return await this.#unreachable(error.message);
    this.#set({ state: "refused", code: fate, message: error.message });
    if (fate === "unprepared") this.#options.unprepared?.();
    await this.#attempts.afterRefusal(this.#signal);
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
    if (before.state !== state.state || processOf(before) !== processOf(state)) this.#waker.now();
    else this.#waker.soon();
  }
}

/** The process that is known to hold the lock: recorded without delay, while its pod is there. */
function processOf(run: Run): string | undefined {
  return run.state === "running" ? run.progress.process?.startedAt : undefined;
}

/** The agent was reached and said no. */
function isAnswer({ code }: CallError): boolean {
  return !["unreachable", "untrusted", "deadline", "aborted", "stopping"].includes(code);
}

const fates: Readonly<Record<CallError["code"], Fate>> = {
  busy: "busy",
  unprepared: "unprepared",
  notFound: "notFound",
  runMismatch: "mismatch",
  invalidRequest: "hopeless",
  unknownMethod: "hopeless",
  tooLarge: "hopeless",
  unsupported: "hopeless",
  unreachable: "transient",
  untrusted: "transient",
  deadline: "transient",
  aborted: "transient",
  protocol: "transient",
  stopping: "transient",
  failed: "transient",
  internal: "transient",
};

const fateOf = ({ code }: CallError): Fate => fates[code];
