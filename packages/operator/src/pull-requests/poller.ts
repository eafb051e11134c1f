/**
 * Reads the lists of open pull requests, once for all Stacks of a namespace that follow a repository with the same
 * credentials. Nothing blocks here: a Stack reads the current result, and its key is woken when the result has changed.
 */
import type { ForgeTarget, PullRequest } from "@pko/forge";
import { namespaceOf, silentLogger, systemClock, type Clock, type Key, type Logger, type Registry } from "@pko/kube";

import { contentHash } from "../shared/digest.ts";
import type { SecretValues } from "../forge/credentials.ts";
import type { Push } from "../shared/channels/pushes.ts";
import { isSameRepository, repositoryId } from "../shared/repository-id.ts";
import { Endpoints } from "../sources/endpoints.ts";
import { PollQueue, type Poll, type PollLimits, type StartedPoll } from "../sources/poll-queue.ts";

/** A repository at its forge, as one Stack reads it. */
export interface ForgeRepository {
  readonly target: ForgeTarget;
  /** Of the API. */
  readonly host: string;
  /** With the credentials. */
  readonly secret: { readonly name: string; readonly values: SecretValues };
  /** The URL of the Git repository, by which webhooks name it. */
  readonly url: string;
}

export interface ForgeFollow {
  readonly repository: ForgeRepository;
  readonly everyMs: number;
  /** When this changes, the list is read at once. */
  readonly request: string;
  /** The pull requests that have a preview. If a list is truncated, those that it does not contain are read one by one. */
  readonly previews: readonly number[];
}

/** "unreachable": another attempt may succeed. The others have to be corrected first: "credentials" in the Secret. */
export type ForgeProblem = "unreachable" | "rejected" | "credentials";

export interface FailedList {
  readonly kind: "failed";
  readonly problem: ForgeProblem;
  /** A clause. */
  readonly message: string;
  readonly retryAfterMs?: number;
}

export interface ListedPullRequests {
  readonly kind: "listed";
  readonly pullRequests: readonly PullRequest[];
  /** The forge has more. Of those that are not listed, only these are known to be closed. */
  readonly truncated?: { readonly closed: readonly number[] };
}

/** Never throws what is expected. */
export type ForgeList = ListedPullRequests | FailedList;

/** `previews`: see `ForgeFollow`. */
export type ListPullRequests = (
  repository: ForgeRepository,
  options: { readonly previews: readonly number[]; readonly signal: AbortSignal },
) => Promise<ForgeList>;

export type ForgePollResult = { readonly kind: "pending" } | Omit<FailedList, "retryAfterMs"> | ForgeList;

export interface PullRequestPoller {
  /** The current result: pending if nobody follows the repository. */
  latest(key: Key, wanted: ForgeFollow): ForgePollResult;
  /** The Stack follows the repository from now on. It is woken when the result differs from `seen`, which it has read. */
  follow(key: Key, wanted: ForgeFollow, seen: ForgePollResult): void;
  forget(key: Key): void;
  /** A verified webhook reports a change. Returns the number of Stacks whose pull requests are read because of it. */
  pushed(push: Push): number;
  /** Ends all polling and forgets everything. */
  stop(): void;
}

interface PollerOptions {
  readonly list: ListPullRequests;
  readonly wake: (key: Key) => void;
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly random?: () => number;
}

const limits: PollLimits = { total: 32, perHost: 16, perNamespace: 8, suspects: 8 };
/** A list may have several pages. */
const timeoutMs = 30_000;
/** Several Stacks that begin to follow a repository share one request. */
const gatherMs = 50;
/** However many webhooks arrive, a list is not read more often because of them. */
const pushSpacingMs = 1000;
/** A forge may send a webhook before its API shows the change: a list without a change is read again. */
const pushRetriesMs = [2000, 10_000, 30_000];
/** A forge that does not respond is reported after this many attempts to Stacks that have a list. */
const reportedFailures = 3;

interface Follower {
  readonly everyMs: number;
  readonly request: string;
  readonly previews: readonly number[];
  reported: ForgePollResult;
}

interface Group {
  readonly repository: ForgeRepository;
  readonly namespace: string;
  readonly endpoint: string;
  /** `repositoryId`. */
  readonly id: string;
  readonly followers: Map<Key, Follower>;
  listed?: ListedPullRequests;
  failed?: FailedList;
  failures: number;
  /** When the last attempt started. */
  lastAt?: number;
  isRunning: boolean;
  waiting?: QueuedPoll;
  /** A change was reported that no attempt has started after. */
  pushedAt?: number;
  /** Attempts since the last report that found no change. */
  pushTries: number;
  timer?: { readonly at: number; readonly cancel: () => void };
}

interface QueuedPoll extends Poll {
  readonly group: Group;
}

export function pullRequestPoller(options: PollerOptions): PullRequestPoller {
  return new Poller(options);
}

class Poller implements PullRequestPoller {
  readonly #options: PollerOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #groups = new Map<string, Group>();
  readonly #groupOf = new Map<Key, string>();
  readonly #endpoints: Endpoints<FailedList>;
  readonly #queue = new PollQueue<QueuedPoll>(limits);
  readonly #count: (result: string) => void;
  #lifetime = new AbortController();

  constructor(options: PollerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
    this.#random = options.random ?? Math.random;
    this.#endpoints = new Endpoints(this.#clock, this.#random);
    this.#count = countPolls(options.metrics);
  }

  latest(key: Key, wanted: ForgeFollow): ForgePollResult {
    const group = this.#groups.get(groupId(key, wanted));
    return group ? resultOf(group) : { kind: "pending" };
  }

  follow(key: Key, wanted: ForgeFollow, seen: ForgePollResult): void {
    const id = groupId(key, wanted);
    if (this.#groupOf.get(key) !== id) this.forget(key);
    const group = this.#groups.get(id) ?? this.#addGroup(id, key, wanted);
    const { everyMs, request, previews } = wanted;
    const isRequested = (group.followers.get(key)?.request ?? request) !== request;
    const reported = resultOf(group);
    group.followers.set(key, { everyMs, request, previews, reported });
    this.#groupOf.set(key, id);
    // An attempt may have ended between the two calls.
    if (!isSame(reported, seen)) this.#options.wake(key);
    if (isRequested) this.#pollAfterPush(group);
    else this.#schedule(group);
  }

  forget(key: Key): void {
    const id = this.#groupOf.get(key);
    const group = id === undefined ? undefined : this.#groups.get(id);
    this.#groupOf.delete(key);
    group?.followers.delete(key);
    if (id === undefined || !group || group.followers.size > 0) return;
    this.#cancel(group);
    this.#groups.delete(id);
  }

  pushed({ namespace, repositories, refs, isPullRequest }: Push): number {
    const ids = repositories.flatMap((url) => repositoryId(url) ?? []);
    const concerned = [...this.#groups.values()].filter(
      (group) =>
        group.namespace === namespace &&
        ids.some((id) => isSameRepository(group.id, id)) &&
        (isPullRequest === true || isHead(group, refs)),
    );
    for (const group of concerned) this.#pollAfterPush(group);
    return concerned.reduce((count, { followers }) => count + followers.size, 0);
  }

  stop(): void {
    this.#lifetime.abort();
    for (const group of this.#groups.values()) this.#cancel(group);
    this.#groups.clear();
    this.#groupOf.clear();
    this.#endpoints.clear();
    this.#lifetime = new AbortController();
  }

  #addGroup(id: string, key: Key, { repository }: ForgeFollow): Group {
    const namespace = namespaceOf(key);
    const group: Group = {
      repository,
      namespace,
      endpoint: `${namespace} ${contentHash([repository.host, repository.secret.values])}`,
      id: repositoryId(repository.url) ?? repository.url,
      followers: new Map(),
      failures: 0,
      isRunning: false,
      pushTries: 0,
    };
    this.#groups.set(id, group);
    return group;
  }

  #cancel(group: Group): void {
    group.timer?.cancel();
    delete group.timer;
    if (group.waiting) this.#queue.remove(group.waiting);
    delete group.waiting;
  }

  #pollAfterPush(group: Group): void {
    // More reports do not postpone the attempt.
    group.pushedAt ??= this.#clock.monotonic();
    group.pushTries = 0;
    this.#schedule(group);
  }

  #schedule(group: Group): void {
    if (group.isRunning || group.waiting || group.followers.size === 0) return;
    const now = this.#clock.monotonic();
    const at = Math.max(now, this.#nextAt(group, now));
    if (group.timer && group.timer.at <= at) return;
    group.timer?.cancel();
    group.timer = { at, cancel: this.#clock.after(at - now, () => this.#enqueue(group)) };
  }

  /** A forge that rests is left alone, whatever webhooks report: it may have named the time until which it limits requests. */
  #nextAt(group: Group, now: number): number {
    const { lastAt, pushedAt } = group;
    if (lastAt === undefined) return now + gatherMs;
    const everyMs = Math.min(...group.followers.values().map((follower) => follower.everyMs));
    const dueAt = lastAt + everyMs * (1 + 0.05 * this.#random());
    const pauseMs = pushRetriesMs[group.pushTries - 1] ?? pushSpacingMs;
    const wantedAt = pushedAt === undefined ? dueAt : Math.min(dueAt, Math.max(pushedAt + gatherMs, lastAt + pauseMs));
    return Math.max(wantedAt, this.#endpoints.resting(group.endpoint)?.restsUntil ?? -Infinity);
  }

  #enqueue(group: Group): void {
    delete group.timer;
    const { namespace, endpoint } = group;
    const endpoints = this.#endpoints;
    group.waiting = {
      group,
      namespaces: new Set([namespace]),
      host: group.repository.host,
      endpoint,
      isRequested: false,
      get isSuspect() {
        return endpoints.failing(endpoint) !== undefined;
      },
    };
    this.#queue.push(group.waiting);
    this.#pump();
  }

  #pump(): void {
    for (let next = this.#queue.next(); next; next = this.#queue.next()) {
      delete next.poll.group.waiting;
      void this.#poll(next, this.#lifetime.signal);
    }
  }

  async #poll({ poll: { group }, end }: StartedPoll<QueuedPoll>, signal: AbortSignal): Promise<void> {
    const at = this.#clock.monotonic();
    // Another repository of the forge may have found out in the meantime that it limits requests.
    const resting = this.#endpoints.resting(group.endpoint);
    group.isRunning = true;
    const wasPushed = group.pushedAt !== undefined;
    delete group.pushedAt;
    const result = resting?.failure ?? (await this.#list(group, signal));
    end();
    group.isRunning = false;
    if (!signal.aborted && group.followers.size > 0) {
      if (!resting) this.#endpoints.record(group.endpoint, result, at);
      this.#count(result.kind === "listed" ? result.kind : result.problem);
      this.#record(group, result, { at, wasPushed });
    }
    this.#pump();
  }

  /** Ends in time, whatever the forge does. */
  async #list({ repository, followers }: Group, signal: AbortSignal): Promise<ForgeList> {
    const previews = [...new Set([...followers.values()].flatMap((follower) => follower.previews))];
    const ending = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<ForgeList>();
    const end = (): void => {
      resolve({ kind: "failed", problem: "unreachable", message: "the forge did not respond in time" });
      ending.abort();
    };
    const cancel = this.#clock.after(timeoutMs, end);
    signal.addEventListener("abort", end, { once: true });
    try {
      return await Promise.race([ended, this.#options.list(repository, { previews, signal: ending.signal })]);
    } catch (error) {
      this.#log.error("reading pull requests failed unexpectedly", { error });
      return { kind: "failed", problem: "unreachable", message: "the forge could not be read" };
    } finally {
      cancel();
      signal.removeEventListener("abort", end);
    }
  }

  #record(group: Group, result: ForgeList, { at, wasPushed }: { at: number; wasPushed: boolean }): void {
    group.lastAt = at;
    if (result.kind === "listed") {
      group.listed = result;
      delete group.failed;
      group.failures = 0;
    } else {
      group.failed = result;
      group.failures++;
    }
    const current = resultOf(group);
    const changed = [...group.followers].filter(([, { reported }]) => !isSame(reported, current));
    if (wasPushed && changed.length === 0 && group.pushTries < pushRetriesMs.length) {
      group.pushTries++;
      group.pushedAt ??= at;
    }
    for (const [key, follower] of changed) {
      follower.reported = current;
      this.#options.wake(key);
    }
    this.#schedule(group);
  }
}

/** Whether one of these refs is the head of a pull request that is known. */
function isHead({ listed }: Group, refs: readonly string[]): boolean {
  return listed?.pullRequests.some(({ head, isFork }) => !isFork && refs.includes(`refs/heads/${head.ref}`)) ?? false;
}

function resultOf({ listed, failed, failures }: Group): ForgePollResult {
  const isTemporary = failed?.problem === "unreachable" && failures < reportedFailures;
  if (failed && !(listed && isTemporary)) {
    const { kind, problem, message } = failed;
    return { kind, problem, message };
  }
  return listed ?? { kind: "pending" };
}

const isSame = (one: ForgePollResult, other: ForgePollResult): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other);

const groupId = (key: Key, { repository }: ForgeFollow): string => contentHash([namespaceOf(key), repository]);

function countPolls(metrics: Registry | undefined): (result: string) => void {
  const polls = metrics?.counter({
    name: "pull_request_polls_total",
    help: "Requests for the open pull requests of a repository by result: listed, unreachable, rejected or credentials.",
    labels: ["result"],
  });
  return (result) => polls?.increment({ result });
}
