/**
 * Preparing workspaces: one request at a time for each, repeated until there is a result.
 *
 *   running ──▶ done            the agent's result, success or failure
 *      │ ▲
 *      ▼ │ with backoff
 *   unreachable, busy
 */
import {
  backoffDelay,
  refKey,
  silentLogger,
  systemClock,
  type BackoffPolicy,
  type Clock,
  type Logger,
} from "@pko/kube";
import { errorMessage } from "@pko/rpc";
import type {
  CallError,
  KnownCli,
  Prepared,
  PrepareFailure,
  PreparePhase,
  PrepareRequest,
  ProjectInfo,
  WorkspaceRef,
} from "@pko/rpc";

import { contentHash } from "../shared/digest.ts";
import type { AgentPod, Preparation, Preparations, Projects, Stoppable } from "./agents.ts";
import { Attempts, dial, type DialOptions } from "./dial.ts";
import { KnownClis } from "./known-clis.ts";

interface PreparationsOptions extends DialOptions {
  /** Called when the state of a workspace's preparation has changed. */
  readonly wake: (workspace: WorkspaceRef) => void;
  /** Called at the end of each preparation, for traces. */
  readonly onEnd?: (workspace: WorkspaceRef, preparation: EndedPreparation) => void;
}

export interface EndedPreparation {
  /** Of the request, in milliseconds since the epoch. */
  readonly startMs: number;
  readonly phases: readonly { readonly phase: PreparePhase; readonly startMs: number }[];
  /** Absent if it succeeded. */
  readonly error?: string;
}

/** A run requests a renewal at each attempt to start, and each renewal costs a preparation or a pass over the Workspace. */
const renewalBackoff: BackoffPolicy = { baseMs: 1000, factor: 2, capMs: 5 * 60_000, jitter: 0.2 };

/** The last renewal of a workspace's preparation. Another run, or another pod, starts without a delay. */
interface Renewal {
  readonly podUid: string;
  readonly runId: string;
  readonly count: number;
  /** When the next one is due, on the monotonic clock. */
  readonly nextAt: number;
}

export function preparations(options: PreparationsOptions): Preparations & Projects & Stoppable {
  return new PreparedWorkspaces(options);
}

class PreparedWorkspaces implements Preparations, Projects, Stoppable {
  readonly #options: PreparationsOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #entries = new Map<string, PreparedPod>();
  readonly #projects = new Map<string, ProjectInfo>();
  readonly #renewals = new Map<string, Renewal>();
  readonly #knownClis = new KnownClis();

  constructor(options: PreparationsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = (options.log ?? silentLogger).child({ logger: "preparations" });
  }

  ensure(pod: AgentPod, request: PrepareRequest): Preparation {
    const key = refKey(pod.workspace);
    const known = this.#entries.get(key);
    const wanted = contentHash(request);
    if (known?.isFor(pod, wanted)) {
      if (!pod.isStarting) known.arrived();
      return known.state;
    }
    known?.end();
    return this.#start(pod, { request, hash: wanted }).state;
  }

  hasResponded(pod: AgentPod): boolean {
    const known = this.#entries.get(refKey(pod.workspace));
    return known !== undefined && known.isOf(pod) && known.hasResponded;
  }

  preparationOf({ workspace, uid }: AgentPod): string | undefined {
    const known = this.#entries.get(refKey(workspace));
    if (known?.uid !== uid || known.state.state !== "done" || !known.state.result.ok) return undefined;
    return known.state.result.prepared.preparation ?? "";
  }

  retry(pod: AgentPod): void {
    const known = this.#entries.get(refKey(pod.workspace));
    if (known?.state.state !== "done") return;
    this.#start(pod, known.wanted);
  }

  renew(pod: AgentPod, runId: string): void {
    const known = this.#entries.get(refKey(pod.workspace));
    // The agent is busy with it.
    if (known?.uid === pod.uid && known.state.state === "running") return;
    if (!this.#isRenewalDue(pod, runId)) return;
    // After a restart or a failure, the Workspace decides what is prepared, and when.
    if (known?.uid !== pod.uid || known.state.state !== "done" || !known.state.result.ok)
      this.#options.wake(pod.workspace);
    else this.#start(pod, known.wanted);
  }

  forget(workspace: WorkspaceRef): void {
    const key = refKey(workspace);
    this.#entries.get(key)?.end();
    this.#entries.delete(key);
    this.#projects.delete(key);
    this.#renewals.delete(key);
    this.#options.agreements?.forget(workspace);
  }

  projectOf(workspace: WorkspaceRef): ProjectInfo | undefined {
    return this.#projects.get(refKey(workspace));
  }

  async stop(): Promise<void> {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    this.#renewals.clear();
    for (const entry of entries) entry.end();
    await Promise.all(entries.map((entry) => entry.ended));
  }

  #isRenewalDue({ workspace, uid: podUid }: AgentPod, runId: string): boolean {
    const key = refKey(workspace);
    const last = this.#renewals.get(key);
    const former = last?.podUid === podUid && last.runId === runId ? last : undefined;
    const now = this.#clock.monotonic();
    if (former && now < former.nextAt) return false;
    const count = (former?.count ?? 0) + 1;
    this.#renewals.set(key, { podUid, runId, count, nextAt: now + backoffDelay(renewalBackoff, count) });
    return true;
  }

  #start(pod: AgentPod, wanted: Wanted): PreparedPod {
    const key = refKey(pod.workspace);
    const logged = { namespace: pod.workspace.namespace, workspace: pod.workspace.name };
    const entry = new PreparedPod(pod, wanted, {
      ...this.#options,
      clock: this.#clock,
      knownClis: () => this.#knownClis.in(pod.workspace.namespace),
      changed: (state) => {
        if (state.state === "done" && state.result.ok) this.#learn(pod.workspace, state.result.prepared);
        this.#options.wake(pod.workspace);
      },
      onEnd: (preparation) => this.#options.onEnd?.(pod.workspace, preparation),
      failed: (error) => this.#log.error("preparing a workspace failed unexpectedly", { ...logged, error }),
    });
    this.#entries.set(key, entry);
    return entry;
  }

  #learn(workspace: WorkspaceRef, { project, cli, pulumiVersion }: Prepared): void {
    this.#projects.set(refKey(workspace), project);
    if (cli !== undefined) this.#knownClis.learn(workspace.namespace, { cli, version: pulumiVersion });
  }
}

interface Wanted {
  readonly request: PrepareRequest;
  /** A hash, because requests may contain secrets. */
  readonly hash: string;
}

interface EntryOptions extends DialOptions {
  readonly clock: Clock;
  readonly knownClis: () => readonly KnownCli[];
  readonly changed: (state: Preparation) => void;
  readonly onEnd: (preparation: EndedPreparation) => void;
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
  /** Aborted once the container runs: before that, an agent that does not respond is no problem. */
  readonly #arrival = new AbortController();
  #state: Preparation = { state: "running" };
  #hasResponded = false;

  constructor(pod: AgentPod, wanted: Wanted, options: EntryOptions) {
    this.#pod = pod;
    this.wanted = wanted;
    this.#options = options;
    this.#attempts = new Attempts(options);
    if (!pod.isStarting) this.#arrival.abort();
    this.ended = this.#run();
  }

  get uid(): string {
    return this.#pod.uid;
  }

  get state(): Preparation {
    return this.#state;
  }

  get hasResponded(): boolean {
    return this.#hasResponded;
  }

  isOf(pod: AgentPod): boolean {
    const { uid, restarts, ip, port } = this.#pod;
    return pod.uid === uid && pod.restarts === restarts && pod.ip === ip && pod.port === port;
  }

  isFor(pod: AgentPod, wanted: string): boolean {
    return this.isOf(pod) && this.wanted.hash === wanted;
  }

  /** The container runs: earlier attempts do not count, and the next one is due now. */
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
        if (await this.#request(signal)) return;
      } catch (error) {
        this.#options.failed(error);
        this.#set({ state: "unreachable", message: errorMessage(error), sinceMs: this.#attempts.sinceMs });
        await this.#untilNextAttempt(signal);
      }
    }
  }

  /** True if the request needs no repetition. */
  async #request(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    const startMs = clock.now();
    const phases: { phase: PreparePhase; startMs: number }[] = [];
    // Not a part of what is wanted: learning a version must not prepare other workspaces again.
    const known = this.#options.knownClis();
    const request = { ...this.wanted.request, ...(known.length > 0 && { knownClis: [...known] }) };
    const reply = await dial(this.#options, this.#pod).prepare(request, {
      signal,
      onPhase: (phase) => {
        phases.push({ phase, startMs: clock.now() });
        this.#set({ state: "running", phase });
      },
    });
    if (signal.aborted) return true;
    if (!reply.ok) return await this.#handleError(reply.error, signal);
    if (!reply.value.ok && reply.value.failure.reason === "superseded") {
      // Superseded by another operator's request, such as the former leader's: this one takes precedence.
      await this.#attempts.afterRejection(signal);
      return false;
    }
    const { value: result } = reply;
    this.#options.onEnd({ startMs, phases, ...(!result.ok && { error: result.failure.message }) });
    this.#set({ state: "done", result });
    return true;
  }

  async #handleError(error: CallError, signal: AbortSignal): Promise<boolean> {
    if (error.code === "busy") {
      const { message, activeRun } = error;
      this.#set({ state: "busy", message, ...(activeRun !== undefined && { activeRun }) });
      await this.#attempts.afterRejection(signal);
      return false;
    }
    if (isPermanent(error)) {
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
    this.#hasResponded ||= state.state !== "unreachable";
    // A message that changes between attempts is not reported.
    const hasChanged = before.state !== state.state || state.state === "done" || phaseOf(before) !== phaseOf(state);
    if (hasChanged) this.#options.changed(state);
  }
}

function phaseOf(state: Preparation): string | undefined {
  return state.state === "running" ? state.phase : undefined;
}

/** This agent will never accept the request. */
function isPermanent({ code }: CallError): boolean {
  return ["invalidRequest", "tooLarge", "unknownMethod", "unsupported"].includes(code);
}
