/**
 * Polls repositories, once for all the Stacks that follow one with the same credentials. Nothing waits here: a Stack asks
 * how things stand, and its key is woken when the answer to its question has changed.
 */
import { createHash } from "node:crypto";

import { candidateRefs, type GitRef } from "@pko/api";
import { silentLogger, systemClock, type Clock, type Key, type Logger } from "@pko/kube";

import type { GitRefs, GitRemote, ListRefs } from "./git-remote.ts";
import type { SourceTrouble } from "./source-view.ts";

export interface GitFollow extends GitRemote {
  readonly ref: Exclude<GitRef, { kind: "commit" }>;
  readonly everyMs: number;
  /** When this changes, only a look that begins after the change will do: whoever asks again wants the present state. */
  readonly request: string;
}

export type GitLook =
  | { readonly kind: "pending" }
  | { readonly kind: "found"; readonly commit: string }
  | { readonly kind: "failed"; readonly trouble: SourceTrouble; readonly message: string };

export interface GitPoller {
  /** How things stand for this Stack, which follows the repository from now on. */
  look(key: Key, follow: GitFollow): GitLook;
  /** The Stack is gone, or follows nothing any more. */
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

/** Looks at repositories that may be under way at once. */
const concurrency = 4;
/** Stacks that ask in a burst, such as after a start, are answered by one look. */
const gatherMs = 50;
/** A network that fails once is no news to those who know an answer. */
const patience = 3;

interface Follower {
  readonly refs: readonly string[];
  readonly everyMs: number;
  readonly request: string;
  /** Looks that began before it do not count. */
  readonly notBefore: number;
  told: GitLook;
}

type Listed = Extract<GitRefs, { kind: "listed" }>;
type Failed = Extract<GitRefs, { kind: "failed" }>;

interface Group {
  readonly remote: GitRemote;
  readonly followers: Map<Key, Follower>;
  /** The last answer, the names it covers, and when it was asked for. */
  listed?: { readonly answer: Listed; readonly refs: ReadonlySet<string>; readonly at: number };
  failed?: { readonly answer: Failed; readonly at: number };
  failures: number;
  /** The beginning of the look that is under way. */
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

  look(key: Key, follow: GitFollow): GitLook {
    const id = groupId(follow);
    if (this.#groupOf.get(key) !== id) this.forget(key);
    const group = this.#groups.get(id) ?? this.#addGroup(id, follow);
    const known = group.followers.get(key);
    const isAnew = known !== undefined && known.request !== follow.request;
    const follower: Follower = {
      refs: candidateRefs(follow.ref),
      everyMs: follow.everyMs,
      request: follow.request,
      notBefore: isAnew ? this.#clock.monotonic() : (known?.notBefore ?? this.#clock.monotonic() - follow.everyMs),
      told: { kind: "pending" },
    };
    group.followers.set(key, follower);
    this.#groupOf.set(key, id);
    follower.told = answerFor(follower, group);
    this.#schedule(group);
    return follower.told;
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

  /** The next look is at the time that the most eager follower wants; at once when someone has no answer. */
  #schedule(group: Group): void {
    if (group.runningSince !== undefined || group.followers.size === 0) return;
    const now = this.#clock.monotonic();
    const followers = [...group.followers.values()];
    const isWanted = followers.some(({ told }) => told.kind === "pending");
    const last = Math.max(group.listed?.at ?? -Infinity, group.failed?.at ?? -Infinity);
    const everyMs = Math.min(...followers.map((follower) => follower.everyMs));
    // Spread a little, so that repositories first seen together are not asked together for ever.
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
    let answer: GitRefs;
    try {
      answer = await this.#options.list(group.remote, refs, signal);
    } catch (error) {
      this.#log.error("a repository could not be looked at", { error });
      answer = { kind: "failed", trouble: "unreachable", message: "the repository could not be looked at" };
    }
    this.#running--;
    delete group.runningSince;
    if (!signal.aborted) this.#take(group, answer, { at, refs: new Set(refs) });
    this.#pump();
  }

  #take(group: Group, answer: GitRefs, asked: { readonly at: number; readonly refs: ReadonlySet<string> }): void {
    if (answer.kind === "listed") {
      group.listed = { answer, ...asked };
      delete group.failed;
      group.failures = 0;
    } else {
      group.failed = { answer, at: asked.at };
      group.failures++;
    }
    for (const [key, follower] of group.followers) {
      const told = answerFor(follower, group);
      if (isSame(told, follower.told)) continue;
      follower.told = told;
      this.#options.wake(key);
    }
    this.#schedule(group);
  }
}

function answerFor(follower: Follower, { listed, failed, failures }: Group): GitLook {
  const covered = listed && follower.refs.every((ref) => listed.refs.has(ref)) ? listed : undefined;
  if (failed && failed.at >= follower.notBefore) {
    const isPassing = failed.answer.trouble === "unreachable" && failures < patience;
    if (!covered || !isPassing || covered.at < follower.notBefore) return failed.answer;
  }
  if (!covered || covered.at < follower.notBefore) return { kind: "pending" };
  for (const ref of follower.refs) {
    const commit = covered.answer.commits.get(ref);
    if (commit !== undefined) return { kind: "found", commit };
  }
  return {
    kind: "failed",
    trouble: "branchMissing",
    message: `the repository has no ${follower.refs.join(" and no ")}`,
  };
}

const isSame = (one: GitLook, other: GitLook): boolean => JSON.stringify(one) === JSON.stringify(other);

function groupId({ url, credentials, ca }: GitRemote): string {
  return createHash("sha256")
    .update(JSON.stringify([url, credentials, ca]))
    .digest("hex");
}
