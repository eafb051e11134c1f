/** What preparations and runs share: connecting to an agent, waiting between attempts, and limiting how often a key is woken. */
import { backoffDelay, sleep, systemClock, type BackoffPolicy, type Clock, type Logger } from "@pko/kube";
import { workspaceServerName } from "@pko/rpc";
import { connectAgent, type AgentClient } from "@pko/rpc/client";

import { agentPort, type AgentPod, type OperatorCa } from "./agents.ts";
import type { Agreements } from "./agreements.ts";

export interface DialOptions {
  readonly ca: Pick<OperatorCa, "operatorCredentials" | "distrusted">;
  /** Shared by everything that connects to the same agents. */
  readonly agreements?: Agreements;
  /** Over HTTPS unless given. */
  readonly connect?: typeof connectAgent | undefined;
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Between attempts to reach an agent. */
  readonly backoff?: BackoffPolicy;
  /** Between attempts while an agent responds that it is busy or not prepared. */
  readonly busyBackoff?: BackoffPolicy;
}

/** Short at first: an agent that has just started listens within a second. */
export const defaultBackoff: BackoffPolicy = { baseMs: 100, factor: 1.2, capMs: 15_000, jitter: 0.2 };
const defaultBusyBackoff: BackoffPolicy = { baseMs: 250, factor: 1.5, capMs: 5_000, jitter: 0.2 };

export function dial({ ca, agreements, connect = connectAgent }: DialOptions, pod: AgentPod): AgentClient {
  return connect({
    address: { host: pod.ip, port: pod.port ?? agentPort, serverName: workspaceServerName(pod.workspace) },
    credentials: () => ca.operatorCredentials(),
    onUntrusted: () => ca.distrusted(),
    ...(agreements && { agreement: agreements.of(pod) }),
  });
}

/** Counts consecutive failures of one kind, and waits longer after each. */
export class Attempts {
  readonly #options: DialOptions;
  readonly #clock: Clock;
  #unreachable = 0;
  #rejected = 0;
  #unreachableSince: { wall: number; readonly monotonic: number } | undefined;

  constructor(options: DialOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Since when the agent is unreachable, by the current wall clock: the time moves with a clock that is set. */
  get sinceMs(): number {
    const [now, monotonic] = [this.#clock.now(), this.#clock.monotonic()];
    const since = (this.#unreachableSince ??= { wall: now, monotonic });
    const wall = now - (monotonic - since.monotonic);
    // Statuses contain this time, and must not change because two clocks differ by a millisecond.
    if (Math.abs(wall - since.wall) > 1000) since.wall = wall;
    return since.wall;
  }

  /** The agent has responded, with or without an error. */
  reached(): void {
    this.#unreachable = 0;
    this.#unreachableSince = undefined;
  }

  async afterUnreachable(signal: AbortSignal): Promise<void> {
    this.#unreachable += 1;
    this.#rejected = 0;
    await sleep(this.#clock, backoffDelay(this.#options.backoff ?? defaultBackoff, this.#unreachable), signal);
  }

  async afterRejection(signal: AbortSignal): Promise<void> {
    this.reached();
    this.#rejected += 1;
    await sleep(this.#clock, backoffDelay(this.#options.busyBackoff ?? defaultBusyBackoff, this.#rejected), signal);
  }
}

/** Wakes at most once per interval, and always after the last change of a burst. */
export class Waker {
  readonly #clock: Clock;
  readonly #wake: () => void;
  readonly #everyMs: number;
  #lastMs = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(wake: () => void, everyMs: number, clock: Clock = systemClock) {
    this.#wake = wake;
    this.#everyMs = everyMs;
    this.#clock = clock;
  }

  now(): void {
    this.stop();
    this.#lastMs = this.#clock.monotonic();
    this.#wake();
  }

  soon(): void {
    if (this.#cancel) return;
    const waitMs = this.#lastMs + this.#everyMs - this.#clock.monotonic();
    if (waitMs <= 0) this.now();
    else this.#cancel = this.#clock.after(waitMs, () => this.now());
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
