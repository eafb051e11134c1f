/**
 * What is polled once for all Stacks that follow it: a group. This class has the groups, their timers and queues; what a poll reads,
 * when it is due, and what its result means is up to the subclass. Nothing blocks here.
 */
import { namespaceOf, silentLogger, systemClock, type Clock, type Key, type Logger } from "@pko/kube";

import { Endpoints, type FailedPoll } from "./endpoints.ts";
import type { Poll, StartedPoll } from "./poll-queue.ts";
import { isSlowResult, type Slow, type TimedQueue } from "./timed-queue.ts";

export interface GroupPollerOptions {
  readonly wake: (key: Key) => void;
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly random?: () => number;
}

export interface PollGroup<QueuedPoll> {
  readonly followers: Map<Key, unknown>;
  /** Polls since the last success. */
  failures: number;
  isRunning: boolean;
  /** Whether its last poll was slow. */
  isSlow?: boolean;
  /** The poll that waits for a slot. */
  waiting?: QueuedPoll;
  /** A push was reported that no poll has started after. */
  pushedAt?: number;
  /** Polls since the last push that found no change. */
  pushTries: number;
  timer?: { readonly at: number; readonly cancel: () => void };
}

/** Of a group that was never polled. */
export const unpolled = { failures: 0, isRunning: false, pushTries: 0 } as const;

/** Requests of several Stacks in a burst, such as after a start, share one poll. */
export const gatherMs = 50;
/** An unreachable server is reported after this many polls to Stacks that have a result. */
export const reportedFailures = 3;
/** However many pushes are reported, a group is not polled more often because of them. */
const pushSpacingMs = 1000;
/** A forge may send a webhook before all of its servers show the change: a poll that finds none is repeated. */
const pushRetriesMs = [2000, 10_000, 30_000];

export interface PollStart {
  readonly at: number;
  /** Whether a webhook had reported a push. */
  readonly wasPushed: boolean;
}

export abstract class GroupPoller<
  Group extends PollGroup<QueuedPoll>,
  QueuedPoll extends Poll & { readonly group: Group },
  Result,
  Failure extends FailedPoll,
> {
  protected readonly wake: (key: Key) => void;
  protected readonly clock: Clock;
  protected readonly log: Logger;
  protected readonly random: () => number;
  protected readonly groups = new Map<string, Group>();
  protected readonly endpoints: Endpoints<Failure>;
  readonly #groupOf = new Map<Key, string>();
  #lifetime = new AbortController();

  /** `maxRetryAfterMs`: how long a server that names a time is left alone at most. */
  constructor(options: GroupPollerOptions, maxRetryAfterMs?: number) {
    const { wake, clock = systemClock, log = silentLogger, random = Math.random } = options;
    this.wake = wake;
    this.clock = clock;
    this.log = log;
    this.random = random;
    this.endpoints = new Endpoints(clock, random, maxRetryAfterMs);
  }

  protected abstract queueOf(poll: QueuedPoll): TimedQueue<QueuedPoll>;
  /** When the next poll is due. */
  protected abstract nextAt(group: Group, now: number): number;
  /** A poll that is due now. */
  protected abstract dueNow(group: Group): QueuedPoll;
  /** Whether its server did not respond last, for this namespace: to this poll, or only to others. */
  protected abstract isServerFailing(poll: QueuedPoll, namespace: string): boolean;
  /** Whether nothing has to be read, because the server does not respond. */
  protected abstract isSpared(poll: QueuedPoll): boolean;
  protected abstract read(started: StartedPoll<QueuedPoll>, signal: AbortSignal): Promise<Result | Slow>;
  protected abstract record(poll: QueuedPoll, result: Result, start: PollStart): void;

  forget(key: Key): void {
    const id = this.#groupOf.get(key);
    const group = id === undefined ? undefined : this.groups.get(id);
    this.#groupOf.delete(key);
    group?.followers.delete(key);
    if (id === undefined || !group) return;
    if (group.followers.size > 0) {
      this.#leaveQueue(group, namespaceOf(key));
      return;
    }
    this.cancel(group);
    this.groups.delete(id);
  }

  #leaveQueue({ waiting, followers }: Group, namespace: string): void {
    if (!waiting || followers.keys().some((key) => namespaceOf(key) === namespace)) return;
    this.queueOf(waiting).leave(waiting, namespace);
  }

  stop(): void {
    this.#lifetime.abort();
    for (const group of this.groups.values()) this.cancel(group);
    this.groups.clear();
    this.#groupOf.clear();
    this.endpoints.clear();
    this.#lifetime = new AbortController();
  }

  /** The group that the key follows from now on. */
  protected join(key: Key, id: string, create: () => Group): Group {
    if (this.#groupOf.get(key) !== id) this.forget(key);
    const group = this.groups.get(id) ?? create();
    this.groups.set(id, group);
    this.#groupOf.set(key, id);
    return group;
  }

  protected cancel(group: Group): void {
    group.timer?.cancel();
    delete group.timer;
    if (group.waiting) this.queueOf(group.waiting).remove(group.waiting);
    delete group.waiting;
  }

  protected schedule(group: Group): void {
    if (group.isRunning || group.waiting || group.followers.size === 0) return;
    const now = this.clock.monotonic();
    const at = Math.max(now, this.nextAt(group, now));
    if (group.timer && group.timer.at <= at) return;
    group.timer?.cancel();
    group.timer = { at, cancel: this.clock.after(at - now, () => this.enqueue(group)) };
  }

  protected enqueue(group: Group): void {
    delete group.timer;
    group.waiting = this.dueNow(group);
    const queue = this.queueOf(group.waiting);
    queue.push(group.waiting);
    this.pump(queue);
  }

  protected pump(queue: TimedQueue<QueuedPoll>): void {
    for (let next = queue.next(); next; next = queue.next()) {
      delete next.poll.group.waiting;
      if (this.isSpared(next.poll)) next.end();
      else void this.#run(next, this.#lifetime.signal);
    }
  }

  async #run(started: StartedPoll<QueuedPoll>, signal: AbortSignal): Promise<void> {
    const { poll, end } = started;
    const { group } = poll;
    const start = { at: this.clock.monotonic(), wasPushed: group.pushedAt !== undefined };
    group.isRunning = true;
    delete group.pushedAt;
    const result = await this.read(started, signal);
    end();
    group.isRunning = false;
    if (!signal.aborted && group.followers.size > 0) this.#record(poll, result, start);
    this.pump(this.queueOf(poll));
  }

  /** If the server responds again, other polls of it that wait may not be suspect any longer. */
  #record(poll: QueuedPoll, result: Result | Slow, start: PollStart): void {
    if (isSlowResult(result)) {
      this.#repeatSlow(poll, start);
      return;
    }
    const failing = [...namespacesOf(poll.group)].filter((namespace) => this.isServerFailing(poll, namespace));
    this.record(poll, result, start);
    for (const namespace of failing)
      if (!this.isServerFailing(poll, namespace)) this.queueOf(poll).reconsider(namespace, poll.host);
  }

  #repeatSlow(poll: QueuedPoll, start: PollStart): void {
    poll.group.isSlow = true;
    this.queueOf(poll).recordSlow(poll.host, namespacesOf(poll.group), start.at);
    this.repeat(poll, start);
  }

  /** The poll has no result, and another one starts as soon as it may. */
  protected repeat({ group }: QueuedPoll, { at, wasPushed }: PollStart): void {
    if (wasPushed) group.pushedAt ??= at;
    this.enqueue(group);
  }

  /** `isResponse`: see `TimedQueue`. */
  protected recordEnd(poll: QueuedPoll, startedAt: number, isResponse: boolean): void {
    const namespaces = namespacesOf(poll.group);
    poll.group.isSlow = this.queueOf(poll).recordEnd(poll.host, { startedAt, namespaces, isResponse });
  }

  /** A poll that is scheduled earlier, or waits for a slot, starts after the push. More pushes do not postpone the poll. */
  protected pollAfterPush(group: Group, at: number): void {
    group.pushedAt ??= at;
    group.pushTries = 0;
    this.schedule(group);
  }

  /** A push was reported, and the poll that started at this time has found no change. */
  protected repeatAfterPush(group: Group, at: number): void {
    if (group.pushTries >= pushRetriesMs.length) return;
    group.pushTries++;
    group.pushedAt ??= at;
  }
}

/** Of the Stacks that follow it now: some may have joined while a poll ran. One by one, because few of thousands may be needed. */
export function* namespacesOf({ followers }: Pick<PollGroup<unknown>, "followers">): Generator<string> {
  const found = new Set<string>();
  for (const key of followers.keys()) {
    const namespace = namespaceOf(key);
    if (found.has(namespace)) continue;
    found.add(namespace);
    yield namespace;
  }
}

/** When a group is polled because of a push; undefined if there is none. */
export function pollAfterPushAt(
  { pushedAt, pushTries }: Pick<PollGroup<unknown>, "pushedAt" | "pushTries">,
  lastStart: number,
): number | undefined {
  const pauseMs = pushRetriesMs[pushTries - 1] ?? pushSpacingMs;
  return pushedAt === undefined ? undefined : Math.max(pushedAt + gatherMs, lastStart + pauseMs);
}
