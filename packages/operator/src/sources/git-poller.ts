/**
 * Polls repositories, once for all Stacks that follow one with the same credentials. Nothing blocks here: a Stack reads the
 * current result, and its key is woken when the result has changed. Which poll starts next is decided by `PollQueue`.
 */
import { candidateRefs, type GitRef } from "@pko/api";
import { namespaceOf, type Key, type Registry } from "@pko/kube";

import type { Push } from "../shared/channels/pushes.ts";
import { contentHash } from "../shared/digest.ts";
import { isSameRepository, repositoryId } from "../shared/repository-id.ts";
import type { NeedsGit } from "./git-http.ts";
import type { RefLister, Transport } from "./git-lister.ts";
import { hostOf, unreachable, unresponsive, type GitRefs, type GitRemote } from "./git-remote.ts";
import {
  gatherMs,
  GroupPoller,
  namespacesOf,
  pollAfterPushAt,
  reportedFailures,
  unpolled,
  type GroupPollerOptions,
  type PollGroup,
  type PollStart,
} from "./group-poller.ts";
import { pollLogKeys } from "./poll-log-keys.ts";
import { pollMetrics, type PollGauges, type PollMetrics } from "./poll-metrics.ts";
import type { Poll, StartedPoll, Suspicion } from "./poll-queue.ts";
import { Rests, type RestingRepository } from "./rests.ts";
import type { SourceProblem } from "./source-view.ts";
import { isSlowResult, TimedQueue, type Slow, type TimedLimits } from "./timed-queue.ts";

export interface GitFollow extends GitRemote {
  readonly ref: Exclude<GitRef, { kind: "commit" }>;
  readonly everyMs: number;
  /** When this changes, only a poll that starts after the change counts: a new request wants the current state. */
  readonly request: string;
}

export type GitPollResult =
  | { readonly kind: "pending" }
  | { readonly kind: "found"; readonly commit: string }
  | { readonly kind: "failed"; readonly problem: SourceProblem; readonly message: string };

export interface GitPoller {
  /** The current result for this Stack: pending if it does not follow the repository and no other Stack's poll is recent. */
  latest(key: Key, wanted: GitFollow): GitPollResult;
  /** The Stack follows the repository from now on. It is woken when the result differs from `seen`, which it has read. */
  follow(key: Key, wanted: GitFollow, seen: GitPollResult): void;
  /** The Stack is deleted, or no longer follows a repository. */
  forget(key: Key): void;
  /**
   * A verified webhook reports a push: polls the repositories of the namespace's Stacks that follow one of its refs, without
   * waiting for their intervals. Returns the number of these Stacks.
   */
  pushed(push: Push): number;
  /** Ends all polling and forgets everything. */
  stop(): void;
}

interface GitPollerOptions extends GroupPollerOptions {
  readonly lister: RefLister;
  readonly metrics?: Registry;
  /** Called when a poll has found another commit for a Stack, for traces. */
  readonly onFound?: (key: Key, poll: FoundCommit) => void;
}

interface FoundCommit {
  /** Of the poll, in milliseconds since the epoch. */
  readonly startMs: number;
  readonly host: string;
  readonly commit: string;
}

/** A git process takes memory, and a hundred times the CPU time of a request. Two namespaces cannot hold all slots, nor all those of suspects. */
const limits: Readonly<Record<Transport, TimedLimits>> = {
  http: {
    total: 256,
    perHost: 32,
    perNamespace: 64,
    perHostOfNamespace: 24,
    suspects: 64,
    suspectsPerHost: 16,
    suspectsPerNamespace: 24,
    timeoutMs: 20_000,
  },
  git: {
    total: 8,
    perHost: 8,
    perNamespace: 3,
    perHostOfNamespace: 3,
    suspects: 5,
    suspectsPerHost: 5,
    suspectsPerNamespace: 2,
    timeoutMs: 30_000,
  },
};
/** When a server responds again, its repositories are polled within this time. */
const maxSpreadMs = 60_000;
/** A repository that cannot be read is polled again sooner than its interval may require, but less and less often. */
const retryMs = { step: 60_000, most: 5 * 60_000 } as const;
/** While webhooks arrive, polling is only a safety net. */
const slowdown = 5;
const slowestMs = 10 * 60_000;
/** A repository without pushes for this time may have lost its webhook. */
const trustPushesMs = 24 * 3_600_000;

interface Follower {
  readonly refs: readonly string[];
  readonly everyMs: number;
  readonly request: string;
  /** A user has requested a poll since the last result. */
  isRequested: boolean;
  /** Polls that started before it do not count. */
  notBefore: number;
  /** A webhook has reported a push to its ref, and no poll has found a change since. */
  isPushed?: boolean;
  /** When a poll has last found a change that a webhook had reported. */
  pushedAt?: number;
  reported: GitPollResult;
}

type Listed = Extract<GitRefs, { kind: "listed" }>;
type Failed = Extract<GitRefs, { kind: "failed" }>;

interface Group extends PollGroup<QueuedPoll> {
  readonly id: string;
  readonly followers: Map<Key, Follower>;
  readonly remote: GitRemote;
  readonly host: string;
  /** For webhooks: `repositoryId`. */
  readonly repository: string;
  /** Identifies the server and the credentials. */
  readonly server: string;
  /** The last list, the names that it covers, and when its poll started. */
  listed?: { readonly list: Listed; readonly refs: ReadonlySet<string>; readonly at: number };
  /** `isSpared`: it is only the failure of the server, which rests; this repository was not polled since it was read. */
  failed?: { readonly failure: Failed; readonly at: number; readonly isSpared: boolean };
  /** Whether the second poll is scheduled, at a random time. */
  isSpread?: boolean;
}

/** A poll that is due. */
interface QueuedPoll extends Poll {
  readonly group: Group;
  readonly transport: Transport;
  readonly dueAt: number;
}

export function gitPoller(options: GitPollerOptions): GitPoller {
  return new Poller(options);
}

class Poller extends GroupPoller<Group, QueuedPoll, ReadRefs, Failed> implements GitPoller {
  readonly #options: GitPollerOptions;
  readonly #metrics: PollMetrics | undefined;
  readonly #queues: Readonly<Record<Transport, TimedQueue<QueuedPoll>>>;
  readonly #rests: Rests;

  constructor(options: GitPollerOptions) {
    super(options);
    this.#options = options;
    const queue = (transport: Transport) => new TimedQueue<QueuedPoll>(limits[transport], this.clock);
    this.#queues = { http: queue("http"), git: queue("git") };
    this.#rests = new Rests(this.endpoints);
    this.#metrics = options.metrics && pollMetrics(options.metrics, () => this.#gauges());
  }

  latest(key: Key, wanted: GitFollow): GitPollResult {
    const group = this.groups.get(groupId(wanted));
    return group ? resultFor(this.#asFollower(wanted, group.followers.get(key)), group) : { kind: "pending" };
  }

  follow(key: Key, wanted: GitFollow, seen: GitPollResult): void {
    const group = this.join(key, groupId(wanted), () => newGroup(wanted));
    const follower = this.#asFollower(wanted, group.followers.get(key));
    // What the Stack has read counts, even if it has become too old for a new follower in the meantime.
    follower.notBefore = Math.min(follower.notBefore, startOf(seen, group));
    group.followers.set(key, follower);
    follower.reported = resultFor(follower, group);
    // A poll may have ended between the two calls.
    if (!isSame(follower.reported, seen)) this.wake(key);
    if (group.waiting) this.#joinQueue(group, group.waiting, key);
    else this.schedule(group);
  }

  #asFollower(wanted: GitFollow, known: Follower | undefined): Follower {
    const { ref, everyMs, request } = wanted;
    const now = this.clock.monotonic();
    const isNewRequest = known !== undefined && known.request !== request;
    const notBefore = isNewRequest ? now : (known?.notBefore ?? now - everyMs);
    const isRequested = isNewRequest || (known?.isRequested ?? false);
    const refs = candidateRefs(ref);
    const { isPushed = false, pushedAt } = known && isSameList(known.refs, refs) ? known : {};
    const pushed = { isPushed, ...(pushedAt !== undefined && { pushedAt }) };
    return { refs, everyMs, request, isRequested, notBefore, ...pushed, reported: { kind: "pending" } };
  }

  pushed(push: Push): number {
    if (push.isPullRequest) return 0;
    const ids = push.repositories.flatMap((url) => repositoryId(url) ?? []);
    const at = this.clock.monotonic();
    let count = 0;
    for (const group of this.groups.values()) {
      if (!ids.some((id) => isSameRepository(group.repository, id))) continue;
      const followers = [...group.followers].filter(([key, follower]) => isPushed(push, key, follower));
      for (const [, follower] of followers) follower.isPushed = true;
      count += followers.length;
      if (followers.length > 0) this.pollAfterPush(group, at);
    }
    return count;
  }

  override stop(): void {
    super.stop();
    for (const queue of Object.values(this.#queues)) queue.forgetHosts();
  }

  protected queueOf({ transport }: QueuedPoll): TimedQueue<QueuedPoll> {
    return this.#queues[transport];
  }

  #isWanted({ followers, listed, failed }: Group): boolean {
    return (!listed && !failed) || followers.values().some(({ reported }) => reported.kind === "pending");
  }

  /** A follower without a result is served immediately. A server that rests is not disturbed, even after a push. */
  protected nextAt(group: Group, now: number): number {
    if (this.#isWanted(group)) return now + gatherMs;
    const dueAt = this.#dueAt(group);
    const pushedAt = pollAfterPushAt(group, lastStartOf(group));
    if (pushedAt === undefined) return dueAt;
    const rested = this.#rests.resting(repositoryOf(group))?.restsUntil ?? -Infinity;
    return Math.min(dueAt, Math.max(pushedAt, rested));
  }

  #intervalOf({ everyMs, pushedAt = -Infinity }: Follower): number {
    const isPushed = this.clock.monotonic() - pushedAt < trustPushesMs;
    return isPushed ? Math.max(everyMs, Math.min(everyMs * slowdown, slowestMs)) : everyMs;
  }

  /** The shortest interval of the followers counts. Repositories that were first polled together are spread over it, and then do not stay in step. */
  #dueAt(group: Group): number {
    const retryAfterMs = group.failed ? Math.min(Math.max(1, group.failures) * retryMs.step, retryMs.most) : Infinity;
    const everyMs = Math.min(retryAfterMs, ...group.followers.values().map((follower) => this.#intervalOf(follower)));
    const rested = this.#rests.resting(repositoryOf(group))?.restsUntil ?? -Infinity;
    // What was never polled may be the first that the server responds to.
    if (group.failed?.isSpared === true && !group.listed) return rested;
    const spread = group.isSpread ? 1 + 0.05 * this.random() : 1 - 0.9 * this.random();
    const last = lastStartOf(group);
    return Math.max(last + everyMs * spread, rested + Math.min(everyMs, maxSpreadMs) * this.random());
  }

  /** The poll waits in the line of the Stack's namespace as well; one that a user has requested waits for no others. */
  #joinQueue(group: Group, waiting: QueuedPoll, key: Key): void {
    const namespace = namespaceOf(key);
    if (group.followers.get(key)?.isRequested && !waiting.isRequested) {
      this.cancel(group);
      this.enqueue(group);
    } else if (!waiting.namespaces.has(namespace)) {
      this.queueOf(waiting).join(waiting, namespace);
      this.pump(this.queueOf(waiting));
    }
  }

  protected dueNow(group: Group): QueuedPoll {
    const transport = this.#options.lister.transportFor(group.remote);
    const { namespaces, server, isRead } = repositoryOf(group);
    return {
      group,
      transport,
      dueAt: this.clock.monotonic(),
      namespaces: new Set(namespaces),
      host: group.host,
      endpoint: `${server} ${isRead}`,
      isRequested: group.followers.values().some((follower) => follower.isRequested),
      isSlow: group.isSlow === true,
      suspicion: (namespace) => this.#suspicion(group, transport, namespace),
    };
  }

  #suspicion(group: Group, transport: Transport, namespace: string): Suspicion | undefined {
    const { id, server, host, isSlow } = group;
    if (this.#rests.isFailing({ id, server, isRead: isRead(group) }, namespace)) return "failing";
    return this.#queues[transport].suspicion(host, namespace, isSlow);
  }

  protected isServerFailing({ group }: QueuedPoll, namespace: string): boolean {
    return this.#rests.isServerFailing(group.server, namespace);
  }

  /** While its server rests, a repository is not polled: a Stack that waits for a first result gets that of the server. */
  protected isSpared({ group, isRequested }: QueuedPoll): boolean {
    const resting = isRequested ? undefined : this.#rests.resting(repositoryOf(group));
    if (!resting) return false;
    const at = this.clock.monotonic();
    const poll = { at, refs: new Set<string>(), wasPushed: false, isSpared: true };
    if (this.#isWanted(group)) this.#recordRefs(group, resting.failure, poll);
    else this.schedule(group);
    return true;
  }

  protected async read(started: StartedPoll<QueuedPoll>, signal: AbortSignal): Promise<ReadRefs | Slow> {
    const { group, transport } = started.poll;
    const refs = [...new Set(group.followers.values().flatMap((follower) => follower.refs))].toSorted();
    const failed = (error: unknown): GitRefs => {
      const keys = pollLogKeys(group.host, group.followers.keys());
      this.log.error("polling a repository failed unexpectedly", { ...keys, error });
      return { ...unreachable, message: "the repository could not be polled" };
    };
    const deadline = { signal, late: unresponsive, failed };
    const result = await this.#queues[transport].run<ReadRefs["result"]>(started, deadline, (ending) =>
      this.#options.lister.list(group.remote, { refs, transport, signal: ending }),
    );
    return isSlowResult(result) ? result : { result, refs: new Set(refs) };
  }

  protected record(poll: QueuedPoll, { result, refs }: ReadRefs, start: PollStart): void {
    if (result.kind === "needsGit") this.repeat(poll, start);
    else this.#finish(poll, result, { ...start, refs });
  }

  #finish(queued: QueuedPoll, result: GitRefs, poll: PollOf): void {
    const { group, transport, dueAt } = queued;
    const seconds = (this.clock.monotonic() - poll.at) / 1000;
    const queuedSeconds = (poll.at - dueAt) / 1000;
    this.#metrics?.recordPoll({ host: group.host, transport, result, seconds, queuedSeconds });
    this.#rests.record(repositoryOf(group), result, poll.at);
    this.recordEnd(queued, poll.at, result.kind === "listed");
    for (const follower of group.followers.values()) if (follower.notBefore <= poll.at) follower.isRequested = false;
    this.#recordRefs(group, result, poll);
  }

  #recordRefs(group: Group, refs: GitRefs, poll: PollOf): void {
    if (refs.kind === "listed") {
      group.listed = { list: refs, ...poll };
      delete group.failed;
      group.failures = 0;
    } else {
      // One that has failed itself does not become one that was read because a new Stack gets the failure of its server.
      const isSpared = poll.isSpared === true && group.failed?.isSpared !== false;
      group.failed = { failure: refs, at: poll.at, isSpared };
      if (poll.isSpared !== true) group.failures++;
    }
    const changed = [...group.followers].filter(([, each]) => !isSame(resultFor(each, group), each.reported));
    if (poll.wasPushed && changed.length === 0) this.repeatAfterPush(group, poll.at);
    for (const [key, follower] of changed) {
      // A change that no webhook has reported: they do not arrive.
      if (!poll.wasPushed && group.pushedAt === undefined) delete follower.pushedAt;
      // Only a change proves that a webhook is not an old one that was sent again.
      else if (follower.isPushed) follower.pushedAt = poll.at;
      follower.isPushed = false;
      follower.reported = resultFor(follower, group);
      this.#reportFound(key, { group, found: follower.reported, at: poll.at });
      this.wake(key);
    }
    this.schedule(group);
    group.isSpread = true;
  }

  #reportFound(key: Key, { group, found, at }: { group: Group; found: GitPollResult; at: number }): void {
    if (found.kind !== "found") return;
    const startMs = this.clock.now() - (this.clock.monotonic() - at);
    this.#options.onFound?.(key, { startMs, host: group.host, commit: found.commit });
  }

  #gauges(): PollGauges {
    const { http, git } = this.#queues;
    const due = [http, git].flatMap(({ oldest }) => (oldest ? [oldest.dueAt] : []));
    const now = this.clock.monotonic();
    return {
      running: { http: http.running, git: git.running },
      waiting: http.waiting + git.waiting,
      oldestSeconds: Math.max(0, ...due.map((at) => now - at)) / 1000,
    };
  }
}

interface ReadRefs {
  readonly result: GitRefs | NeedsGit;
  /** That were requested. */
  readonly refs: ReadonlySet<string>;
}

interface PollOf extends PollStart {
  readonly refs: ReadonlySet<string>;
  /** Nothing was polled, because the server rests. */
  readonly isSpared?: boolean;
}

const lastStartOf = ({ listed, failed }: Group): number => Math.max(listed?.at ?? -Infinity, failed?.at ?? -Infinity);

const isSameList = (one: readonly string[], other: readonly string[]): boolean => one.join(" ") === other.join(" ");

function isPushed({ namespace, refs }: Push, key: Key, follower: Follower): boolean {
  return namespaceOf(key) === namespace && (refs.length === 0 || follower.refs.some((ref) => refs.includes(ref)));
}

/** Whether its last poll read it. */
const isRead = ({ listed, failed }: Group): boolean => listed !== undefined && (!failed || failed.isSpared);

function repositoryOf(group: Group): RestingRepository {
  const { id, server } = group;
  return { id, server, isRead: isRead(group), namespaces: namespacesOf(group) };
}

/** The start of the poll that led to a result; infinity if there is none. */
function startOf(result: GitPollResult, { listed, failed }: Group): number {
  if (result.kind === "pending") return Infinity;
  const { at = Infinity } = (result.kind === "failed" && failed) || listed || {};
  return at;
}

function resultFor(follower: Follower, { listed, failed, failures }: Group): GitPollResult {
  const covered = listed && follower.refs.every((ref) => listed.refs.has(ref)) ? listed : undefined;
  if (failed && failed.at >= follower.notBefore) {
    const isTemporary = failed.failure.problem === "unreachable" && failures < reportedFailures;
    const { kind, problem, message } = failed.failure;
    if (!covered || !isTemporary || covered.at < follower.notBefore) return { kind, problem, message };
  }
  if (!covered || covered.at < follower.notBefore) return { kind: "pending" };
  for (const ref of follower.refs) {
    const commit = covered.list.commits.get(ref);
    if (commit !== undefined) return { kind: "found", commit };
  }
  return {
    kind: "failed",
    problem: "branchMissing",
    message: `the repository has no ${follower.refs.join(" and no ")}`,
  };
}

const isSame = (one: GitPollResult, other: GitPollResult): boolean => JSON.stringify(one) === JSON.stringify(other);

function newGroup(wanted: GitRemote): Group {
  const { url, credentials, ca } = wanted;
  const host = hostOf(url);
  return {
    id: groupId(wanted),
    remote: { url, credentials, ...(ca !== undefined && { ca }) },
    host,
    repository: repositoryId(url) ?? url,
    server: contentHash([host, credentials, ca]),
    followers: new Map(),
    ...unpolled,
  };
}

function groupId({ url, credentials, ca }: GitRemote): string {
  return contentHash([url, credentials, ca]);
}
