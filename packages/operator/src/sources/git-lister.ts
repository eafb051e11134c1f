/** Reads repositories: by requests of this process, or with a git process if it has to be one. */
import { parseRemote, proxyFor } from "@pko/git";
import { systemClock, type Clock } from "@pko/kube";

import { httpReader, type ComparedCommits, type NeedsGit } from "./git-http.ts";
import { processLister, type GitRefs, type GitRemote, type GitSettings, type ListRefs } from "./git-remote.ts";
import type { CommitPair } from "./source-view.ts";

/** `http`: requests of this process. `git`: a git process, for SSH and for servers that this process cannot read. */
export type Transport = "http" | "git";

interface RefsRequest {
  readonly refs: readonly string[];
  readonly transport: Transport;
  readonly signal: AbortSignal;
}

export interface RefLister {
  transportFor(remote: GitRemote): Transport;
  /** `needsGit`: nothing was read, and the next transport is `git`. */
  list(remote: GitRemote, request: RefsRequest): Promise<GitRefs | NeedsGit>;
}

export interface CommitComparer {
  /** Unknown if only git can read the repository. */
  compare(remote: GitRemote, commits: CommitPair, signal: AbortSignal): Promise<ComparedCommits>;
}

/** For how long a repository is read by git processes before the next attempt to do without them. */
const needsGitMs = 10 * 60_000;

export function gitLister(settings: GitSettings, clock: Clock = systemClock): RefLister & CommitComparer {
  const overHttp = httpReader(settings, clock);
  const withProcess = processLister(settings);
  const needsGitUntil = new WeakMap<GitRemote, number>();
  return {
    transportFor(remote) {
      const isLearned = (needsGitUntil.get(remote) ?? -Infinity) > clock.monotonic();
      return isLearned || requiresGit(remote, settings) ? "git" : "http";
    },
    async list(remote, { refs, transport, signal }) {
      if (transport === "git") return await withProcess(remote, refs, signal);
      const listed = await overHttp.list(remote, refs, signal);
      if (listed.kind === "needsGit") needsGitUntil.set(remote, clock.monotonic() + needsGitMs);
      return listed;
    },
    async compare(remote, commits, signal) {
      if (requiresGit(remote, settings)) return needsGitToCompare;
      return await overHttp.compare(remote, commits, signal);
    },
  };
}

const needsGitToCompare = { kind: "unknown", reason: "commits are compared only over HTTPS" } as const;

function requiresGit({ url }: GitRemote, { policy, inherited = {} }: GitSettings): boolean {
  const parsed = parseRemote(url, policy);
  if (!parsed.ok) return false;
  if (parsed.remote.kind === "ssh") return true;
  // This process supports no SOCKS proxies.
  const proxy = proxyFor(parsed.remote.url, inherited);
  return proxy !== undefined && !/^https?:\/\//i.test(proxy);
}

/** For tests. */
export function inProcess(list: ListRefs): RefLister & CommitComparer {
  return {
    transportFor: () => "http",
    list: (remote, { refs, signal }) => list(remote, refs, signal),
    compare: () => Promise.resolve(needsGitToCompare),
  };
}
