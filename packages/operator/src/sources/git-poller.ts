/**
 * Polls repositories, once for all Stacks that follow one with the same credentials. Nothing blocks here: a Stack reads the
 * current result, and its key is woken when the result has changed.
 */
import { candidateRefs, type GitRef } from "@pko/api";
import { silentLogger, systemClock, type Clock, type Key, type Logger } from "@pko/kube";

import { contentHash } from "../shared/digest.ts";
import type { GitRefs, GitRemote, ListRefs } from "./git-remote.ts";
import type { SourceProblem } from "./source-view.ts";

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
  /** Ends all polling and forgets everything. */
  stop(): void;
}

interface GitPollerOptions {
  readonly list: ListRefs;
  readonly wake: (key: Key) => void;
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly random?: () => number;
}

/** Polls that may run at the same time. */
const concurrency = 4;
/** Requests of several Stacks in a burst, such as after a start, share one poll. */
const gatherMs = 50;
/** An unreachable repository is reported after this many polls to Stacks that have a result. */
const reportedFailures = 3;

interface Follower {
  readonly refs: readonly string[];
  readonly everyMs: number;
  readonly request: string;
  /** Polls that started before it do not count. */
  notBefore: number;
  reported: GitPollResult;
}

type Listed = Extract<GitRefs, { kind: "listed" }>;
type Failed = Extract<GitRefs, { kind: "failed" }>;

interface Group {
  readonly remote: GitRemote;
  readonly followers: Map<Key, Follower>;
  /** The last list, the names that it covers, and when its poll started. */
  listed?: { readonly list: Listed; readonly refs: ReadonlySet<string>; readonly at: number };
  failed?: { readonly failure: Failed; readonly at: number };
  failures: number;
  /** The start of the poll that is running. */
  runningSince?: number;
  timer?: { readonly at: number; readonly cancel: () => void };
}

export function gitPoller(options: GitPollerOptions): GitPoller {
  return new Poller(options);
}

class Poller implements GitPoller {
  readonly #options: GitPollerOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #groups = new Map<string, Group>();
  readonly #groupOf = new Map<Key, string>();
  readonly #waiting: Group[] = [];
  #running = 0;
  #lifetime = new AbortController();

  constructor(options: GitPollerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
  }

  latest(key: Key, wanted: GitFollow): GitPollResult {
    const group = this.#groups.get(groupId(wanted));
    return group ? resultFor(this.#asFollower(wanted, group.followers.get(key)), group) : { kind: "pending" };
  }

  follow(key: Key, wanted: GitFollow, seen: GitPollResult): void {
    const id = groupId(wanted);
    if (this.#groupOf.get(key) !== id) this.forget(key);
    const group = this.#groups.get(id) ?? this.#addGroup(id, wanted);
    const follower = this.#asFollower(wanted, group.followers.get(key));
    // What the Stack has read counts, even if it has become too old for a new follower meanwhile.
    follower.notBefore = Math.min(follower.notBefore, startOf(seen, group));
    group.followers.set(key, follower);
    this.#groupOf.set(key, id);
    follower.reported = resultFor(follower, group);
    // A poll may have ended between the two calls.
    if (!isSame(follower.reported, seen)) this.#options.wake(key);
    this.#schedule(group);
  }

  #asFollower(wanted: GitFollow, known: Follower | undefined): Follower {
    const { ref, everyMs, request } = wanted;
    const now = this.#clock.monotonic();
    const isNewRequest = known !== undefined && known.request !== request;
    const notBefore = isNewRequest ? now : (known?.notBefore ?? now - everyMs);
    return { refs: candidateRefs(ref), everyMs, request, notBefore, reported: { kind: "pending" } };
  }

  forget(key: Key): void {
    const id = this.#groupOf.get(key);
    const group = id === undefined ? undefined : this.#groups.get(id);
    this.#groupOf.delete(key);
    group?.followers.delete(key);
    if (id === undefined || !group || group.followers.size > 0) return;
    group.timer?.cancel();
    this.#groups.delete(id);
  }

  stop(): void {
    this.#lifetime.abort();
    for (const group of this.#groups.values()) group.timer?.cancel();
    this.#groups.clear();
    this.#groupOf.clear();
    this.#waiting.length = 0;
    this.#lifetime = new AbortController();
  }

  #addGroup(id: string, { url, credentials, ca }: GitRemote): Group {
    const remote = { url, credentials, ...(ca !== undefined && { ca }) };
    const group: Group = { remote, followers: new Map(), failures: 0 };
    this.#groups.set(id, group);
    return group;
  }

  /** The shortest interval of the followers counts; a follower without a result is served immediately. */
  #schedule(group: Group): void {
    if (group.runningSince !== undefined || group.followers.size === 0) return;
    const now = this.#clock.monotonic();
    const followers = [...group.followers.values()];
    const isWanted = followers.some(({ reported }) => reported.kind === "pending");
    const last = Math.max(group.listed?.at ?? -Infinity, group.failed?.at ?? -Infinity);
    const everyMs = Math.min(...followers.map((follower) => follower.everyMs));
    // With jitter, so that repositories that were first polled together do not stay in step.
    const spread = 1 + 0.05 * (this.#options.random ?? Math.random)();
    const at = isWanted || last === -Infinity ? now + gatherMs : Math.max(now, last + everyMs * spread);
    if (group.timer && group.timer.at <= at) return;
    group.timer?.cancel();
    group.timer = { at, cancel: this.#clock.after(at - now, () => this.#enqueue(group)) };
  }

  #enqueue(group: Group): void {
    delete group.timer;
    group.runningSince = this.#clock.monotonic();
    this.#waiting.push(group);
    this.#pump();
  }

  #pump(): void {
    while (this.#running < concurrency) {
      const group = this.#waiting.shift();
      if (!group) return;
      this.#running++;
      void this.#poll(group, this.#lifetime.signal);
    }
  }

  async #poll(group: Group, signal: AbortSignal): Promise<void> {
    const at = this.#clock.monotonic();
    group.runningSince = at;
    const refs = [...new Set([...group.followers.values()].flatMap((follower) => follower.refs))].toSorted();
    let result: GitRefs;
    try {
      result = await this.#options.list(group.remote, refs, signal);
    } catch (error) {
      this.#log.error("polling a repository failed unexpectedly", { error });
      result = { kind: "failed", problem: "unreachable", message: "the repository could not be polled" };
    }
    this.#running--;
    delete group.runningSince;
    if (!signal.aborted) this.#record(group, result, { at, refs: new Set(refs) });
    this.#pump();
  }

  #record(group: Group, refs: GitRefs, poll: { readonly at: number; readonly refs: ReadonlySet<string> }): void {
    if (refs.kind === "listed") {
      group.listed = { list: refs, ...poll };
      delete group.failed;
      group.failures = 0;
    } else {
      group.failed = { failure: refs, at: poll.at };
      group.failures++;
    }
    for (const [key, follower] of group.followers) {
      const result = resultFor(follower, group);
      if (isSame(result, follower.reported)) continue;
      follower.reported = result;
      this.#options.wake(key);
    }
    this.#schedule(group);
  }
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
    if (!covered || !isTemporary || covered.at < follower.notBefore) return failed.failure;
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

function groupId({ url, credentials, ca }: GitRemote): string {
  return contentHash([url, credentials, ca]);
}
