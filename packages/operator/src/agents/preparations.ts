/**
 * Preparing workspaces: one request at a time for each, asked again until it is answered.
 *
 *   running ──▶ done            the agent's result, good or bad
 *      │ ▲
 *      ▼ │ at growing intervals
 *   unreachable, busy
 */
import { refKey, silentLogger, systemClock, type Clock, type Logger } from "@pko/kube";
import { errorMessage } from "@pko/rpc";
import type { CallError, PrepareFailure, PrepareRequest, ProjectInfo, WorkspaceRef } from "@pko/rpc";

import type { AgentPod, Preparation, Preparations, Projects, Stoppable } from "./agents.ts";
import { Attempts, dial, type DialOptions } from "./dial.ts";
import { fingerprint } from "./fingerprint.ts";

interface PreparationsOptions extends DialOptions {
  /** Called when the state of a workspace's preparation has changed. */
  readonly wake: (workspace: WorkspaceRef) => void;
}

export function preparations(options: PreparationsOptions): Preparations & Projects & Stoppable {
  return new PreparationBook(options);
}

class PreparationBook implements Preparations, Projects, Stoppable {
  readonly #options: PreparationsOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #entries = new Map<string, PreparedPod>();
  readonly #projects = new Map<string, ProjectInfo>();

  constructor(options: PreparationsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = (options.log ?? silentLogger).child({ logger: "preparations" });
  }

  ensure(pod: AgentPod, request: PrepareRequest): Preparation {
    const key = refKey(pod.workspace);
    const known = this.#entries.get(key);
    const wanted = fingerprint(request);
    if (known?.isFor(pod, wanted)) {
      if (!pod.isComing) known.arrived();
      return known.state;
    }
    known?.end();
    return this.#begin(pod, { request, fingerprint: wanted }).state;
  }

  hasAnswered(pod: AgentPod): boolean {
    const known = this.#entries.get(refKey(pod.workspace));
    return known !== undefined && known.isOf(pod) && known.hasAnswered;
  }

  retry(pod: AgentPod): void {
    const known = this.#entries.get(refKey(pod.workspace));
    if (known?.state.state !== "done") return;
    this.#begin(pod, known.wanted);
  }

  renew(pod: AgentPod): void {
    const known = this.#entries.get(refKey(pod.workspace));
    // After a restart, or a failure: the Workspace decides what is prepared, and when.
    if (known?.uid !== pod.uid || known.state.state !== "done" || !known.state.result.ok)
      this.#options.wake(pod.workspace);
    else this.#begin(pod, known.wanted);
  }

  forget(workspace: WorkspaceRef): void {
    const key = refKey(workspace);
    this.#entries.get(key)?.end();
    this.#entries.delete(key);
    this.#projects.delete(key);
    this.#options.agreements?.forget(workspace);
  }

  projectOf(workspace: WorkspaceRef): ProjectInfo | undefined {
    return this.#projects.get(refKey(workspace));
  }

  async stop(): Promise<void> {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    for (const entry of entries) entry.end();
    await Promise.all(entries.map((entry) => entry.ended));
  }

  #begin(pod: AgentPod, wanted: Wanted): PreparedPod {
    const key = refKey(pod.workspace);
    const entry = new PreparedPod(pod, wanted, {
      ...this.#options,
      clock: this.#clock,
      changed: (state) => {
        if (state.state === "done" && state.result.ok) this.#projects.set(key, state.result.prepared.project);
        this.#options.wake(pod.workspace);
      },
      failed: (error) => this.#log.error("preparing failed unexpectedly", { workspace: key, error }),
    });
    this.#entries.set(key, entry);
    return entry;
  }
}

interface Wanted {
  readonly request: PrepareRequest;
  readonly fingerprint: string;
}

interface EntryOptions extends DialOptions {
  readonly changed: (state: Preparation) => void;
  readonly failed: (error: unknown) => void;
}

/** One request to one pod. */
class PreparedPod {
  readonly wanted: Wanted;
  readonly ended: Promise<void>;
  readonly #pod: AgentPod;
  readonly #options: EntryOptions;
  readonly #attempts: Attempts;
  readonly #abort = new AbortController();
  /** Until then nobody need wonder that the agent does not answer. */
  readonly #arrival = new AbortController();
  #state: Preparation = { state: "running" };
  #hasAnswered = false;

  constructor(pod: AgentPod, wanted: Wanted, options: EntryOptions) {
    this.#pod = pod;
    this.wanted = wanted;
    this.#options = options;
    this.#attempts = new Attempts(options);
    if (!pod.isComing) this.#arrival.abort();
    this.ended = this.#run();
  }

  get uid(): string {
    return this.#pod.uid;
  }

  get state(): Preparation {
    return this.#state;
  }

  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  isOf(pod: AgentPod): boolean {
    const { uid, restarts, ip, port } = this.#pod;
    return pod.uid === uid && pod.restarts === restarts && pod.ip === ip && pod.port === port;
  }

  isFor(pod: AgentPod, wanted: string): boolean {
    return this.isOf(pod) && this.wanted.fingerprint === wanted;
  }

  /** The container runs: what was tried before does not count, and the next attempt is due now. */
  arrived(): void {
    if (this.#arrival.signal.aborted) return;
    this.#attempts.reached();
    this.#arrival.abort();
  }

  end(): void {
    this.#abort.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      try {
        if (await this.#ask(signal)) return;
      } catch (error) {
        this.#options.failed(error);
        this.#set({ state: "unreachable", message: errorMessage(error), sinceMs: this.#attempts.sinceMs });
        await this.#untilNextAttempt(signal);
      }
    }
  }

  /** True when there is nothing more to ask. */
  async #ask(signal: AbortSignal): Promise<boolean> {
    const reply = await dial(this.#options, this.#pod).prepare(this.wanted.request, {
      signal,
      onPhase: (phase) => this.#set({ state: "running", phase }),
    });
    if (signal.aborted) return true;
    if (!reply.ok) return await this.#answerTo(reply.error, signal);
    if (!reply.value.ok && reply.value.failure.reason === "superseded") {
      // By another operator's request, such as one that led before us: ours is the one that counts.
      await this.#attempts.afterRefusal(signal);
      return false;
    }
    this.#set({ state: "done", result: reply.value });
    return true;
  }

  async #answerTo(error: CallError, signal: AbortSignal): Promise<boolean> {
    if (error.code === "busy") {
      const { message, activeRun } = error;
      this.#set({ state: "busy", message, ...(activeRun !== undefined && { activeRun }) });
      await this.#attempts.afterRefusal(signal);
      return false;
    }
    if (isHopeless(error)) {
      const failure: PrepareFailure = { phase: "source", reason: "other", message: error.message, lines: [] };
      this.#set({ state: "done", result: { ok: false, failure } });
      return true;
    }
    this.#set({ state: "unreachable", message: error.message, sinceMs: this.#attempts.sinceMs });
    await this.#untilNextAttempt(signal);
    return false;
  }

  async #untilNextAttempt(signal: AbortSignal): Promise<void> {
    const arrival = this.#arrival.signal;
    await this.#attempts.afterUnreachable(arrival.aborted ? signal : AbortSignal.any([signal, arrival]));
  }

  #set(state: Preparation): void {
    if (this.#abort.signal.aborted) return;
    const before = this.#state;
    this.#state = state;
    this.#hasAnswered ||= state.state !== "unreachable";
    // A message that changes from attempt to attempt is no news.
    const isNews = before.state !== state.state || state.state === "done" || phaseOf(before) !== phaseOf(state);
    if (isNews) this.#options.changed(state);
  }
}

function phaseOf(state: Preparation): string | undefined {
  return state.state === "running" ? state.phase : undefined;
}

/** This agent will never carry the request out. */
function isHopeless({ code }: CallError): boolean {
  return ["invalidRequest", "tooLarge", "unknownMethod", "unsupported"].includes(code);
}
