/** Which repository of which forge, and how its pull requests are read. */
import type { NormalPullRequests } from "@pko/api";
import {
  CommitHashes,
  forge,
  ForgeError,
  forgeHttp,
  targetOf,
  type CommitStatus,
  type Forge,
  type ForgeTarget,
  type PullRequest,
} from "@pko/forge";
import { trustedCaCertificates } from "@pko/git";

import { forgeCredentials } from "../forge/credentials.ts";
import type { GitHubAppTokens } from "../sources/github-app.ts";
import type { GitSettings } from "../sources/git-remote.ts";
import * as messages from "./messages.ts";
import type { FailedList, ForgeList, ForgeRepository, ListPullRequests } from "./poller.ts";

export type ForgeListerSettings = Pick<GitSettings, "policy" | "inherited"> & {
  readonly githubApps: GitHubAppTokens;
};

/** Newer ones first: more are seldom needed to find those within the limit. */
const maxListed = 300;
/** Bitbucket Cloud takes a request for each head that is not known yet, and allows 1,000 an hour. */
const maxListedAtBitbucket = 50;

export function forgeLister(settings: ForgeListerSettings): ListPullRequests {
  const hashes = new CommitHashes();
  return async (repository, { previews, signal }) => {
    const opened = await openForge(settings, repository, signal);
    if (opened.kind === "failed") return opened;
    const limit = repository.target.type === "Bitbucket" ? maxListedAtBitbucket : maxListed;
    try {
      return await readList(opened.client(hashes), { limit, previews });
    } catch (error) {
      if (!(error instanceof ForgeError)) throw error;
      return failureOf(error);
    }
  };
}

/** "refused": by the forge; another attempt would fail, too. */
export type ReportStatus = (
  access: ForgeAccount,
  report: { readonly commit: string; readonly status: CommitStatus; readonly signal: AbortSignal },
) => Promise<"sent" | "refused" | "unavailable">;

export function statusReporter(settings: ForgeListerSettings): ReportStatus {
  return async (account, { commit, status, signal }) => {
    const opened = await openForge(settings, account, signal);
    if (opened.kind === "failed") return "unavailable";
    try {
      await opened.client().setStatus(commit, status);
      return "sent";
    } catch (error) {
      if (!(error instanceof ForgeError)) throw error;
      return failureOf(error).problem === "unreachable" ? "unavailable" : "refused";
    }
  };
}

const accessProblems = { invalid: "credentials", refused: "rejected", unavailable: "unreachable" } as const;

type ForgeAccount = Pick<ForgeRepository, "target" | "secret">;

/** `client` throws a ForgeError if the target is not valid. */
async function openForge(
  { policy, inherited = {}, githubApps }: ForgeListerSettings,
  { target, secret }: ForgeAccount,
  signal: AbortSignal,
): Promise<{ readonly kind: "opened"; readonly client: (hashes?: CommitHashes) => Forge } | FailedList> {
  const access = await forgeCredentials(secret.name, secret.values, { target, githubApps, signal });
  if (access.kind !== "found") {
    return { kind: "failed", problem: accessProblems[access.kind], message: access.message };
  }
  const trusted = await trustedCaCertificates(inherited);
  const http = forgeHttp({ policy, environment: inherited, signal, ...(trusted !== undefined && { ca: trusted }) });
  const client = (hashes?: CommitHashes): Forge =>
    forge(target, access.credentials, { http, ...(hashes && { hashes }) });
  return { kind: "opened", client };
}

/** How many pull requests are read one by one, because a truncated list does not contain them. The others are kept. */
const maxLookups = 50;

async function readList(
  client: Forge,
  { limit, previews }: { readonly limit: number; readonly previews: readonly number[] },
): Promise<ForgeList> {
  const { pullRequests, isComplete } = await client.openPullRequests(limit);
  if (isComplete) return { kind: "listed", pullRequests };
  const listed = new Set(pullRequests.map(({ number }) => number));
  const missing = previews.filter((number) => !listed.has(number)).slice(0, maxLookups);
  const found: PullRequest[] = [];
  for (const number of missing) {
    const pullRequest = await client.openPullRequest(number);
    if (pullRequest) found.push(pullRequest);
  }
  const open = new Set(found.map(({ number }) => number));
  const closed = missing.filter((number) => !open.has(number));
  return { kind: "listed", pullRequests: [...pullRequests, ...found], truncated: { closed } };
}

function failureOf({ kind, message, retryAfterMs }: ForgeError): FailedList {
  switch (kind) {
    case "unavailable":
    case "rateLimited":
      return { kind: "failed", problem: "unreachable", message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
    case "unauthorized":
    case "notFound":
    case "invalid":
      return { kind: "failed", problem: "rejected", message };
  }
}

/** A string is a problem. */
export function targetAt(settings: NormalPullRequests["forge"], url: string): ForgeTarget | string {
  const { type, url: api, repository } = settings;
  const target = targetOf({ type, ...(api && { url: api }), ...(repository && { repository }) }, url);
  return target ?? messages.repositoryUnknown;
}
