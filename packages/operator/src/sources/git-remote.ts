/** The refs of a repository, read with `git ls-remote`, and what this has in common with reading them in this process. */
import { tmpdir } from "node:os";

import {
  explainGit,
  findMoved,
  openRepository,
  parseRemote,
  trustedCaCertificates,
  type GitConfigLine,
  type GitProblem,
  type NetworkPolicy,
  type OpenRepository,
  type RepositoryCredentials,
  type Unopened,
} from "@pko/git";

import { runGit } from "./git-command.ts";
import type { GitCredentials } from "./git-credentials.ts";
import { appCredentials, type GitHubAppTokens } from "./github-app.ts";
import type { SourceProblem } from "./source-view.ts";

export interface GitRemote {
  readonly url: string;
  readonly credentials: GitCredentials;
  /** Certificates of the server's private CA, in PEM. */
  readonly ca?: string;
}

/** With its port; the whole URL if it has none that can be recognized. */
export function hostOf(url: string): string {
  return URL.parse(url)?.host || (/^(?:[^@/]+@)?([^:/]+):/.exec(url)?.[1] ?? url);
}

export interface GitSettings {
  readonly policy: NetworkPolicy;
  /** The executable; found on PATH when absent. */
  readonly git?: string;
  /** The operator's environment, for proxies and CAs. */
  readonly inherited?: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs?: number;
  /** Without it, authentication as a GitHub App fails. */
  readonly githubApps?: GitHubAppTokens;
}

export type GitRefs =
  | { readonly kind: "listed"; readonly commits: ReadonlyMap<string, string> }
  | {
      readonly kind: "failed";
      readonly problem: SourceProblem;
      readonly message: string;
      /** How long the server wants to be left alone. */
      readonly retryAfterMs?: number;
    };

type Failed = Extract<GitRefs, { kind: "failed" }>;

export type ListRefs = (remote: GitRemote, refs: readonly string[], signal: AbortSignal) => Promise<GitRefs>;

export const failed = (problem: SourceProblem, message: string): Failed => ({ kind: "failed", problem, message });

/** With more names, all refs are listed: the command would become longer than the saved output. */
const maxNames = 200;

/** With a git process. */
export function processLister(settings: GitSettings): ListRefs {
  return async (remote, refs, signal) => {
    const authenticated = await authenticate(remote, settings, signal);
    if (authenticated.kind === "failed") return authenticated;
    const request = { settings, refs, signal };
    const listed = await listRefs(authenticated, request);
    if (listed.kind !== "moved") return listed;
    const moved = await movedTo(authenticated, listed, request);
    if (!moved) return noRepositoryThere;
    const relisted = await listRefs(moved, request);
    return relisted.kind === "moved" ? movedTwice : relisted;
  };
}

export const noRepositoryThere = failed(
  "refused",
  "the repository's address redirects to a page that is not a repository",
);
export const movedTwice = failed("refused", "the repository's address redirects more than once");

/** A repository with credentials that git accepts. */
export interface AuthenticatedRemote {
  readonly kind: "authenticated";
  readonly url: string;
  readonly credentials: RepositoryCredentials;
  readonly ca?: string;
}

export async function authenticate(
  remote: GitRemote,
  { githubApps }: GitSettings,
  signal: AbortSignal,
): Promise<AuthenticatedRemote | Failed> {
  const { url, credentials, ca } = remote;
  const trusting = ca !== undefined && { ca };
  if (credentials.kind === "token") {
    const basic = { kind: "basic", username: "git", password: credentials.token } as const;
    return { kind: "authenticated", url, credentials: basic, ...trusting };
  }
  if (credentials.kind !== "githubApp") return { kind: "authenticated", url, credentials, ...trusting };
  if (!githubApps) return { kind: "failed", problem: "refused", message: "this operator does not support GitHub Apps" };
  const { kind: _, ...app } = credentials;
  const token = await githubApps.tokenFor({ ...app, repository: url, ...trusting }, signal);
  if (!token.ok) return failed(token.isTemporary ? "unreachable" : "auth", token.message);
  return { kind: "authenticated", url, credentials: appCredentials(token.token), ...trusting };
}

/** For all redirects together. */
const moveMs = 60_000;

/** Follows the redirect; the credentials are kept only for the same origin. */
export async function movedTo(
  remote: AuthenticatedRemote,
  { authorization }: Pick<Moved, "authorization">,
  request: Omit<ListRequest, "refs">,
): Promise<AuthenticatedRemote | undefined> {
  const { policy, inherited = {} } = request.settings;
  const parsed = parseRemote(remote.url, policy);
  if (!parsed.ok || parsed.remote.kind !== "http") return undefined;
  const from = parsed.remote.url;
  const ca = remote.ca ?? (await trustedCaCertificates(inherited));
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(moveMs)]);
  const moved = await findMoved(from.href, {
    policy,
    environment: inherited,
    signal,
    ...(authorization !== undefined && { authorization }),
    ...(ca !== undefined && { ca }),
  }).catch(() => undefined);
  if (moved?.kind !== "moved") return undefined;
  const to = moved.url;
  if (to.origin !== from.origin) return { ...remote, url: to.href, credentials: { kind: "none" } };
  const { username, password } = URL.parse(remote.url) ?? to;
  to.username = username;
  to.password = password;
  return { ...remote, url: to.href };
}

interface ListRequest {
  readonly settings: GitSettings;
  readonly refs: readonly string[];
  readonly signal: AbortSignal;
}

/** The server redirected git. */
interface Moved {
  readonly kind: "moved";
  /** The header that was accepted at the old address. */
  readonly authorization?: string;
}

export const openProblems: Record<Unopened["problem"], SourceProblem> = {
  refused: "refused",
  credentials: "auth",
  unresolved: "unreachable",
};

const lowSpeedTimeout: readonly GitConfigLine[] = [["http.lowSpeedTime", "30"]];

async function listRefs(remote: AuthenticatedRemote, request: ListRequest): Promise<GitRefs | Moved> {
  const { policy, inherited = {} } = request.settings;
  const context = { home: tmpdir(), policy, inherited };
  const opened = await openRepository(remote, { context, settings: lowSpeedTimeout });
  if (opened.kind === "unopened") return failed(openProblems[opened.problem], opened.message);
  try {
    return await runLsRemote(opened, request);
  } finally {
    await opened.dispose();
  }
}

async function runLsRemote(
  repository: OpenRepository,
  { settings, refs, signal }: ListRequest,
): Promise<GitRefs | Moved> {
  const { env, remote, authorization } = repository;
  const end = await runGit({
    git: settings.git ?? "git",
    args: ["ls-remote", "--quiet", "--", remote, ...patterns(refs)],
    cwd: env["HOME"] ?? tmpdir(),
    env,
    timeoutMs: settings.timeoutMs ?? 60_000,
    signal,
  });
  if (end.kind === "missing") return failed("unreachable", "git is not installed in the operator's image");
  if (end.kind === "late") return unresponsive;
  if (end.code === 0) return { kind: "listed", commits: parseRefs(end.stdout) };
  const explained = explain(end.stderr);
  return explained === "moved" ? { kind: "moved", ...(authorization !== undefined && { authorization }) } : explained;
}

export const unreachable = failed("unreachable", "the repository cannot be reached");
export const unresponsive = failed("unreachable", "the repository did not respond in time");

/** What git printed, or would have printed. */
export function explain(output: string): Failed | "moved" {
  const explained = explainGit(output);
  if (!explained) return unreachable;
  return explained.problem === "moved" ? "moved" : failed(gitProblems[explained.problem], explained.message);
}

const gitProblems: Record<Exclude<GitProblem, "moved">, SourceProblem> = {
  credentials: "auth",
  untrusted: "refused",
  noRepository: "notFound",
  noRevision: "branchMissing",
  other: "unreachable",
};

/** The commit of an annotated tag is listed under its name and `^{}`. */
function patterns(refs: readonly string[]): string[] {
  if (refs.length > maxNames) return [];
  return refs.flatMap((ref) => (ref.startsWith("refs/tags/") ? [ref, `${ref}^{}`] : [ref]));
}

/** An annotated tag is resolved to the commit that it points to. */
export function parseRefs(text: string): Map<string, string> {
  const commits = new Map<string, string>();
  const peeled = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [commit = "", name = ""] = line.split("\t");
    if (!/^[0-9a-f]{40,64}$/.test(commit) || name === "") continue;
    if (name.endsWith("^{}")) peeled.set(name.slice(0, -3), commit);
    else commits.set(name, commit);
  }
  for (const [name, commit] of peeled) commits.set(name, commit);
  return commits;
}
