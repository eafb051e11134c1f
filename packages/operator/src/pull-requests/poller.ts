/**
 * Reads the lists of open pull requests, once for all Stacks of a namespace that follow a repository with the same
 * credentials. Nothing blocks here: a Stack reads the current result, and its key is woken when the result has changed.
 */
import type { ForgeTarget, PullRequest } from "@pko/forge";
import { namespaceOf, type Key, type Registry } from "@pko/kube";

import { contentHash } from "../shared/digest.ts";
import type { SecretValues } from "../forge/credentials.ts";
import type { Push } from "../shared/channels/pushes.ts";
import { isSameRepository, repositoryId } from "../shared/repository-id.ts";
import {
  gatherMs,
  GroupPoller,
  pollAfterPushAt,
  reportedFailures,
  unpolled,
  type GroupPollerOptions,
  type PollGroup,
  type PollStart,
} from "../sources/group-poller.ts";
import { pollLogKeys } from "../sources/poll-log-keys.ts";
import type { Poll, StartedPoll } from "../sources/poll-queue.ts";
import { isSlowResult, TimedQueue, type Slow, type TimedLimits } from "../sources/timed-queue.ts";

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

interface PollerOptions extends GroupPollerOptions {
  readonly list: ListPullRequests;
  readonly metrics?: Registry;
}

const limits: TimedLimits = {
  total: 32,
  perHost: 16,
  perNamespace: 8,
  perHostOfNamespace: 8,
  suspects: 8,
  suspectsPerHost: 8,
  suspectsPerNamespace: 3,
  // A list may have several pages.
  timeoutMs: 30_000,
};
/** The limits of forges are for an hour. */
const maxRetryAfterMs = 60 * 60_000;

interface Follower {
  readonly everyMs: number;
  readonly request: string;
  readonly previews: readonly number[];
  reported: ForgePollResult;
}

interface Group extends PollGroup<QueuedPoll> {
  readonly followers: Map<Key, Follower>;
  readonly repository: ForgeRepository;
  readonly namespace: string;
  readonly endpoint: string;
  /** `repositoryId`. */
  readonly id: string;
  listed?: ListedPullRequests;
  failed?: FailedList;
  /** When the last attempt started. */
  lastAt?: number;
}

interface QueuedPoll extends Poll {
  readonly group: Group;
}

export function pullRequestPoller(options: PollerOptions): PullRequestPoller {
  return new Poller(options);
}

class Poller extends GroupPoller<Group, QueuedPoll, ReadList, FailedList> implements PullRequestPoller {
  readonly #options: PollerOptions;
  readonly #queue: TimedQueue<QueuedPoll>;
  readonly #count: (result: string) => void;

  constructor(options: PollerOptions) {
    super(options, maxRetryAfterMs);
    this.#options = options;
    this.#queue = new TimedQueue(limits, this.clock);
    this.#count = countPolls(options.metrics);
  }

  latest(key: Key, wanted: ForgeFollow): ForgePollResult {
    const group = this.groups.get(groupId(key, wanted));
    return group ? resultOf(group) : { kind: "pending" };
  }

  follow(key: Key, wanted: ForgeFollow, seen: ForgePollResult): void {
    const group = this.join(key, groupId(key, wanted), () => newGroup(key, wanted));
    const { everyMs, request, previews } = wanted;
    const isRequested = (group.followers.get(key)?.request ?? request) !== request;
    const reported = resultOf(group);
    group.followers.set(key, { everyMs, request, previews, reported });
    // An attempt may have ended between the two calls.
    if (!isSame(reported, seen)) this.wake(key);
    if (isRequested) this.pollAfterPush(group, this.clock.monotonic());
    else this.schedule(group);
  }

  pushed({ namespace, repositories, refs, isPullRequest }: Push): number {
    const ids = repositories.flatMap((url) => repositoryId(url) ?? []);
    const concerned = [...this.groups.values()].filter(
      (group) =>
        group.namespace === namespace &&
        ids.some((id) => isSameRepository(group.id, id)) &&
        (isPullRequest === true || refs.length === 0 || isHead(group, refs)),
    );
    for (const group of concerned) this.pollAfterPush(group, this.clock.monotonic());
    return concerned.reduce((count, { followers }) => count + followers.size, 0);
  }

  override stop(): void {
    super.stop();
    this.#queue.forgetHosts();
  }

  protected queueOf(): TimedQueue<QueuedPoll> {
    return this.#queue;
  }

  /** A forge that rests is left alone, whatever webhooks report: it may have named the time until which it limits requests. */
  protected nextAt(group: Group, now: number): number {
    const { lastAt } = group;
    if (lastAt === undefined) return now + gatherMs;
    const everyMs = Math.min(...group.followers.values().map((follower) => follower.everyMs));
    const dueAt = lastAt + everyMs * (1 + 0.05 * this.random());
    const wantedAt = Math.min(dueAt, pollAfterPushAt(group, lastAt) ?? Infinity);
    return Math.max(wantedAt, this.endpoints.resting(group.endpoint)?.restsUntil ?? -Infinity);
  }

  protected dueNow(group: Group): QueuedPoll {
    const { namespace, endpoint, isSlow = false } = group;
    const { host } = group.repository;
    return {
      group,
      namespaces: new Set([namespace]),
      host,
      endpoint,
      isRequested: false,
      isSlow,
      suspicion: () =>
        this.endpoints.failing(endpoint) ? "failing" : this.#queue.suspicion(host, namespace, group.isSlow),
    };
  }

  protected isServerFailing({ endpoint }: QueuedPoll): boolean {
    return this.endpoints.failing(endpoint) !== undefined;
  }

  /** All followers get the failure of a forge that rests. */
  protected isSpared(): boolean {
    return false;
  }

  protected async read(started: StartedPoll<QueuedPoll>, signal: AbortSignal): Promise<ReadList | Slow> {
    const { group, endpoint } = started.poll;
    // Another repository of the forge may have found out in the meantime that it limits requests.
    const resting = this.endpoints.resting(endpoint);
    if (resting) return { list: resting.failure, isResting: true };
    const previews = [...new Set([...group.followers.values()].flatMap((follower) => follower.previews))];
    const failed = (error: unknown): ForgeList => {
      const keys = pollLogKeys(group.repository.host, group.followers.keys());
      this.log.error("reading pull requests failed unexpectedly", { ...keys, error });
      return unreachable("the forge could not be read");
    };
    const late = unreachable("the forge did not respond in time");
    const list = await this.#queue.run(started, { signal, late, failed }, (ending) =>
      this.#options.list(group.repository, { previews, signal: ending }),
    );
    return isSlowResult(list) ? list : { list, isResting: false };
  }

  protected record(poll: QueuedPoll, { list: result, isResting }: ReadList, { at, wasPushed }: PollStart): void {
    const { group, endpoint } = poll;
    if (!isResting) {
      this.endpoints.record(endpoint, result, at);
      this.recordEnd(poll, at, result.kind === "listed");
    }
    this.#count(result.kind === "listed" ? result.kind : result.problem);
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
    if (wasPushed && changed.length === 0) this.repeatAfterPush(group, at);
    for (const [key, follower] of changed) {
      follower.reported = current;
      this.wake(key);
    }
    this.schedule(group);
  }
}

interface ReadList {
  readonly list: ForgeList;
  /** The forge rests, and nothing was read. */
  readonly isResting: boolean;
}

const unreachable = (message: string): ForgeList => ({ kind: "failed", problem: "unreachable", message });

function newGroup(key: Key, { repository }: ForgeFollow): Group {
  const namespace = namespaceOf(key);
  return {
    repository,
    namespace,
    endpoint: `${namespace} ${contentHash([repository.host, repository.secret.values])}`,
    id: repositoryId(repository.url) ?? repository.url,
    followers: new Map(),
    ...unpolled,
  };
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
