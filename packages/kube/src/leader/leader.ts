/**
 * Leader election with a Lease of coordination.k8s.io/v1, with client-go's semantics and names: the holder renews every
 * `retryPeriod` and gives up after `renewDeadline` without success; a candidate takes over when it has seen no change for
 * `leaseDuration`. In addition, a clean stop releases the Lease and candidates watch it, so that a handover takes
 * milliseconds.
 *
 * Only compare-and-swap writes and their responses decide. The watch is only a hint to read the Lease now.
 */
import { onAbort, underSignals } from "../abort.ts";
import { builtin } from "../client/builtin.ts";
import type { CallOptions, Client } from "../client/client.ts";
import { sleep, systemClock, type Clock } from "../clock.ts";
import { isForbidden } from "../client/errors.ts";
import type { Alarm } from "./kernel-alarm.ts";
import {
  HeldTerm,
  NotLeaderError,
  stopwatch,
  type Elector,
  type Stopwatch,
  type Term,
  type TimeMark,
} from "./leadership.ts";
import { holderOf, leaseLock, type Annotations, type LeaseChange, type LeaseLock, type LeaseState } from "./lease.ts";
import { silentLogger, type Logger } from "../telemetry/log.ts";
import type { Registry } from "../telemetry/metrics.ts";

export interface LeaseElectorOptions {
  /** Not a fenced client: the elector writes the Lease before it leads. */
  readonly client: Client;
  readonly lease: { readonly namespace: string; readonly name: string };
  /** Unique for each process: with a name that survives a restart, two processes could both appear to hold the Lease. */
  readonly identity: string;
  readonly leaseDurationMs?: number;
  readonly renewDeadlineMs?: number;
  readonly retryPeriodMs?: number;
  /** No write starts within this time before `renewDeadline`. */
  readonly inFlightMs?: number;
  /** Ends the process if it is frozen beyond the end of its term; created by `kernelAlarm()`. */
  readonly alarm?: Alarm | undefined;
  /** Receives the annotations of the Lease: before each term, and when they have changed. */
  readonly onAnnotations?: (annotations: Annotations) => void;
  /** Added to the annotations of the Lease while this process holds it: for people, tools and other replicas. */
  readonly annotations?: () => Annotations;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** A value for `LeaseElectorOptions.identity`. */
export function uniqueIdentity(host: string): string {
  return `${host}_${crypto.randomUUID()}`;
}

export function leaseElector(options: LeaseElectorOptions): Elector {
  return new LeaseElector(options);
}

interface Timing {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly inFlightMs: number;
}

/** Keeps candidates from retrying at the same time. client-go's factor. */
const jitter = 0.2;
/** Permissions rarely change soon. */
const forbiddenPauseMs = 60_000;

class LeaseElector implements Elector {
  readonly #options: LeaseElectorOptions;
  readonly #timing: Timing;
  readonly #clock: Clock;
  readonly #watch: Stopwatch;
  readonly #lock: LeaseLock;
  readonly #log: Logger;
  readonly #random: () => number;
  #term: HeldTerm | undefined;
  /** The Lease as last read or written, and when this version was first seen. */
  #seen: { state: LeaseState; at: TimeMark } | undefined;
  #wake = new AbortController();
  #hasFailed = false;

  constructor(options: LeaseElectorOptions) {
    this.#options = options;
    this.#timing = timingOf(options);
    this.#clock = options.clock ?? systemClock;
    this.#watch = stopwatch(this.#clock);
    this.#lock = leaseLock(options.client, options.lease);
    this.#log = options.log ?? silentLogger;
    this.#random = options.random ?? Math.random;
    this.#exposeStatus();
  }

  get term(): Term | undefined {
    return this.#term?.signal.aborted ? undefined : this.#term;
  }

  isCertain(): boolean {
    return this.#term?.isCertain() ?? false;
  }

  async guard<T>(operation: string, write: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (!this.#term) throw new NotLeaderError(operation);
    return await this.#term.guard(operation, write);
  }

  async run(stop: AbortSignal, lead: (term: Term) => Promise<void>): Promise<void> {
    const hints = new AbortController();
    const watching = this.#watchForHints(hints.signal);
    try {
      while (!stop.aborted) {
        const term = await this.#acquire(stop);
        if (term) await this.#serve(term, lead);
      }
    } finally {
      hints.abort();
      await watching;
    }
  }

  async #acquire(stop: AbortSignal): Promise<HeldTerm | undefined> {
    while (!stop.aborted) {
      const term = await this.#attempt("could not read or take the lease", () => this.#tryAcquire(stop), stop);
      if (term) return term;
      const wait = this.#timing.retryPeriodMs * (1 + jitter * this.#random());
      await this.#pause(stop, Math.min(wait, this.#untilExpiryMs() || wait));
    }
    return undefined;
  }

  async #tryAcquire(stop: AbortSignal): Promise<HeldTerm | undefined> {
    // Only the read can be aborted: a write without a response could leave a Lease that no process renews or releases.
    const found = await this.#lock.read({ ...this.#callOptions(), signal: stop });
    // If the Lease was deleted, its holder may not have noticed yet.
    if (!found && this.#untilExpiryMs() > 0) return undefined;
    if (found) this.#remember(found);
    if (found && found.holder !== "" && found.holder !== this.#options.identity && this.#untilExpiryMs() > 0) {
      return undefined;
    }
    const sent = this.#watch.mark();
    const transitions = found ? found.transitions + 1 : 0;
    const change = { ...this.#holding(transitions), acquiredAt: this.#clock.now() };
    const options = this.#callOptions();
    const taken = await (found ? this.#lock.update(found, change, options) : this.#lock.create(change, options));
    if (!taken) return undefined;
    this.#remember(taken);
    const { renewDeadlineMs: writeMs, inFlightMs } = this.#timing;
    return new HeldTerm({ epoch: transitions, writeMs, inFlightMs, watch: this.#watch }, sent);
  }

  async #serve(term: HeldTerm, lead: (term: Term) => Promise<void>): Promise<void> {
    this.#log.info("leading", { identity: this.#options.identity, epoch: term.epoch });
    this.#term = term;
    const renewing = this.#renewUntilEnd(term);
    try {
      await lead(term);
    } finally {
      const lost = term.signal.aborted;
      term.end("stepping down");
      this.#term = undefined;
      await renewing;
      if (!lost) await this.#release(term);
    }
  }

  async #renewUntilEnd(term: HeldTerm): Promise<void> {
    const { leaseDurationMs, renewDeadlineMs } = this.#timing;
    let cancelExpiry = (): void => undefined;
    const armExpiry = (): void => {
      cancelExpiry();
      // Halfway between the end of our own term and the earliest start of another.
      this.#options.alarm?.set(term.remainingMs() + (leaseDurationMs - renewDeadlineMs) / 2);
      if (term.remainingMs() <= 0) this.#lose(term, "not renewed in time");
      else cancelExpiry = this.#clock.after(term.remainingMs(), armExpiry);
    };
    armExpiry();
    while (!term.signal.aborted) {
      await this.#pause(term.signal, this.#hasFailed ? this.#timing.retryPeriodMs / 2 : this.#timing.retryPeriodMs);
      if (term.signal.aborted) break;
      await this.#attempt("could not renew the lease", () => this.#renew(term));
      if (!term.signal.aborted) armExpiry();
    }
    cancelExpiry();
    // The alarm stays set for a write that cannot be aborted.
    if (await this.#writesEnd(term)) this.#options.alarm?.clear();
  }

  /** Whether every write of an ended term has its response, or had enough time to take effect without one. */
  async #writesEnd(term: HeldTerm): Promise<boolean> {
    const started = this.#watch.mark();
    while (term.inFlight > 0 || term.settlingMs() > 0) {
      if (this.#watch.atLeastMs(started) > 2 * this.#timing.inFlightMs) return false;
      await sleep(this.#clock, 10);
    }
    return true;
  }

  async #renew(term: HeldTerm): Promise<void> {
    const sent = this.#watch.mark();
    const holder = await this.#overwrite(this.#holding(term.epoch));
    if (holder === this.#options.identity) term.renewed(sent);
    else this.#lose(term, holder ? `taken by ${holder}` : "the lease was deleted");
  }

  /** Overwrites a Lease that we hold. Returns who holds it afterwards. */
  async #overwrite(change: LeaseChange): Promise<string> {
    // Twice, because a change that does not take the Lease, such as a new label, makes the first attempt conflict.
    for (let attempt = 1; attempt <= 2 && this.#seen; attempt++) {
      const written = await this.#lock.update(this.#seen.state, change, this.#callOptions());
      const now = written ?? (await this.#lock.read(this.#callOptions()));
      if (now) this.#remember(now);
      if (written || now?.holder !== this.#options.identity) return now?.holder ?? "";
    }
    throw new Error("the lease changes faster than it can be written");
  }

  #lose(term: HeldTerm, why: string): void {
    if (term.signal.aborted) return;
    this.#log.warn("lost the lease", { why, epoch: term.epoch, identity: this.#options.identity });
    term.end(`lost the lease: ${why}`);
  }

  /** Only if none of our writes is in flight: the next leader starts within milliseconds. */
  async #release(term: HeldTerm): Promise<void> {
    if (term.inFlight > 0) {
      this.#log.warn("lease left to expire: writes are still in flight", { writes: term.inFlight });
      return;
    }
    const change = { holder: "", durationMs: 1000, transitions: term.epoch, renewedAt: this.#clock.now() };
    const released = await this.#attempt("could not release the lease", async () => {
      return (await this.#overwrite(change)) !== this.#options.identity;
    });
    if (released) this.#log.info("lease released", { epoch: term.epoch });
  }

  #holding(transitions: number): LeaseChange {
    const { leaseDurationMs: durationMs } = this.#timing;
    const annotations = this.#options.annotations?.();
    const holding = { holder: this.#options.identity, durationMs, transitions, renewedAt: this.#clock.now() };
    return { ...holding, ...(annotations && { annotations }) };
  }

  #remember(state: LeaseState): void {
    if (this.#seen?.state.version === state.version) return;
    const isNew = this.#hasNewAnnotations(state.annotations);
    this.#seen = { state, at: this.#watch.mark() };
    if (isNew) this.#options.onAnnotations?.(state.annotations);
  }

  #hasNewAnnotations(annotations: Annotations): boolean {
    // The API server sorts them.
    return JSON.stringify(this.#seen?.state.annotations) !== JSON.stringify(annotations);
  }

  /** How long until a Lease that does not change may be taken. */
  #untilExpiryMs(): number {
    if (!this.#seen || this.#seen.state.holder === "") return 0;
    return Math.max(0, this.#seen.state.durationMs - this.#watch.atLeastMs(this.#seen.at));
  }

  async #attempt<T>(message: string, call: () => Promise<T>, stop?: AbortSignal): Promise<T | undefined> {
    try {
      const result = await call();
      this.#hasFailed = false;
      return result;
    } catch (error) {
      this.#hasFailed = true;
      if (!stop?.aborted) this.#log.warn(message, { error });
      return undefined;
    }
  }

  /** Leaves time for a second attempt before the deadline, and does not reuse a connection after a failure. */
  #callOptions(): CallOptions {
    return { timeoutMs: this.#timing.renewDeadlineMs / 3, freshConnection: this.#hasFailed };
  }

  async #pause(signal: AbortSignal, ms: number): Promise<void> {
    await underSignals([signal, this.#wake.signal], (either) => sleep(this.#clock, ms, either));
    if (this.#wake.signal.aborted) this.#wake = new AbortController();
  }

  async #watchForHints(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let pause = this.#timing.retryPeriodMs;
      try {
        await this.#watchOnce(signal);
      } catch (error) {
        // Only a debug message: without hints, the election is merely one retry period slower.
        if (!signal.aborted) this.#log.debug("watch of the lease ended", { error });
        if (isForbidden(error)) pause = forbiddenPauseMs;
      }
      await sleep(this.#clock, pause, signal);
    }
  }

  async #watchOnce(signal: AbortSignal): Promise<void> {
    const { client, lease } = this.#options;
    const scope = { namespace: lease.namespace, fieldSelector: `metadata.name=${lease.name}` };
    const { resourceVersion } = await client.list(builtin.leases, { ...scope, signal });
    const silence = new AbortController();
    const stopListening = onAbort(signal, (reason) => silence.abort(reason));
    // A Lease in use changes every retry period; a watch that is silent for longer than its duration may be dead.
    let cancel = (): void => undefined;
    const arm = (): void => {
      cancel();
      cancel = this.#clock.after(2 * this.#timing.leaseDurationMs, () => silence.abort(new Error("silent")));
    };
    arm();
    try {
      for await (const event of client.watch(builtin.leases, { ...scope, resourceVersion, signal: silence.signal })) {
        arm();
        if (event.type === "BOOKMARK") continue;
        const isDeleted = event.type === "DELETED";
        this.#hint(isDeleted ? "" : holderOf(event.object), isDeleted ? {} : (event.object.metadata.annotations ?? {}));
      }
    } finally {
      cancel();
      stopListening();
    }
  }

  /** A candidate wakes up when the Lease is free, the holder when the Lease names another, both when annotations change. */
  #hint(holder: string, annotations: Annotations): void {
    const isRelevant = this.#term ? holder !== this.#options.identity : holder === "";
    if (isRelevant || this.#hasNewAnnotations(annotations)) this.#wake.abort();
  }

  #exposeStatus(): void {
    const { metrics, lease } = this.#options;
    const status = metrics?.gauge({
      name: "leader_election_master_status",
      help: "1 while this replica leads, 0 while it is on standby.",
      labels: ["name"],
    });
    // Also known on standby: Prometheus may be unable to scrape the leader.
    const held = metrics?.gauge({
      name: "leader_election_lease_held",
      help: "1 while a replica or another process holds the Lease, as far as this replica knows.",
      labels: ["name"],
    });
    metrics?.onCollect(() => {
      status?.set({ name: lease.name }, this.isCertain() ? 1 : 0);
      held?.set({ name: lease.name }, this.#untilExpiryMs() > 0 ? 1 : 0);
    });
  }
}

function timingOf(options: LeaseElectorOptions): Timing {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2000 } = options;
  const { inFlightMs = Math.min(1000, renewDeadlineMs / 4) } = options;
  if (leaseDurationMs <= renewDeadlineMs) throw new Error("leaseDuration must be longer than renewDeadline");
  if (renewDeadlineMs - inFlightMs <= retryPeriodMs * (1 + jitter)) {
    throw new Error("renewDeadline must leave time for more than one retryPeriod");
  }
  if (!(retryPeriodMs > 0)) throw new Error("retryPeriod must be above zero");
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs, inFlightMs };
}
