/** One look at a repository's refs by `git ls-remote`. */
import { tmpdir } from "node:os";

import {
  explainGit,
  findMoved,
  openRepository,
  parseRemote,
  trustedAuthorities,
  type GitConfigLine,
  type GitTrouble,
  type NetworkPolicy,
  type OpenRepository,
  type RepositoryCredentials,
  type Unopened,
} from "@pko/git";

import type { GitHubAppTokens } from "../workspace/prepare-request.ts";
import { runGit } from "./git-command.ts";
import type { GitCredentials } from "./git-credentials.ts";
import type { SourceTrouble } from "./source-view.ts";

export interface GitRemote {
  readonly url: string;
  readonly credentials: GitCredentials;
  /** Certificates of the server's private authority, in PEM. */
  readonly ca?: string;
}

export interface GitSettings {
  readonly policy: NetworkPolicy;
  /** The executable; found on PATH when absent. */
  readonly git?: string;
  /** Of the operator's own environment, for proxies and certificate authorities. */
  readonly inherited?: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs?: number;
  /** Without it, who signs in as a GitHub App is told so. */
  readonly githubApps?: GitHubAppTokens;
}

export type GitRefs =
  | { readonly kind: "listed"; readonly commits: ReadonlyMap<string, string> }
  | { readonly kind: "failed"; readonly trouble: SourceTrouble; readonly message: string };

export type ListRefs = (remote: GitRemote, refs: readonly string[], signal: AbortSignal) => Promise<GitRefs>;

const failed = (trouble: SourceTrouble, message: string): GitRefs => ({ kind: "failed", trouble, message });

/** More names than this make a longer command than it makes a shorter answer. */
const mostNames = 200;

export function gitLister(settings: GitSettings): ListRefs {
  return async (remote, refs, signal) => {
    const signedIn = await signIn(remote, settings, signal);
    if (signedIn.kind === "failed") return signedIn;
    const question = { settings, refs, signal };
    const listed = await listRefs(signedIn, question);
    if (listed.kind !== "moved") return listed;
    const moved = await movedTo(signedIn, listed, question);
    if (!moved) return failed("refused", "the repository's address leads elsewhere, and not to a repository");
    const again = await listRefs(moved, question);
    return again.kind === "moved"
      ? failed("refused", "the repository's address leads elsewhere again and again")
      : again;
  };
}

type Failed = Extract<GitRefs, { kind: "failed" }>;

/** A repository with credentials that git takes as they are. */
interface SignedIn {
  readonly kind: "signedIn";
  readonly url: string;
  readonly credentials: RepositoryCredentials;
  readonly ca?: string;
}

async function signIn(remote: GitRemote, { githubApps }: GitSettings, signal: AbortSignal): Promise<SignedIn | Failed> {
  const { url, credentials, ca } = remote;
  const trusting = ca !== undefined && { ca };
  if (credentials.kind !== "githubApp") return { kind: "signedIn", url, credentials, ...trusting };
  if (!githubApps) return { kind: "failed", trouble: "refused", message: "this operator signs in as no GitHub App" };
  const { kind: _, ...app } = credentials;
  const token = await githubApps.tokenFor({ ...app, repository: url, ...trusting }, signal);
  if (!token.ok) return { kind: "failed", trouble: "auth", message: token.message };
  const basic = { kind: "basic", username: "x-access-token", password: token.token } as const;
  return { kind: "signedIn", url, credentials: basic, ...trusting };
}

/** All redirects together. */
const moveMs = 60_000;

/** With the credentials only where the origin is the same. */
async function movedTo(remote: SignedIn, { authorization }: Moved, question: Question): Promise<SignedIn | undefined> {
  const { policy, inherited = {} } = question.settings;
  const parsed = parseRemote(remote.url, policy);
  if (!parsed.ok || parsed.remote.kind !== "http") return undefined;
  const from = parsed.remote.url;
  const ca = remote.ca ?? (await trustedAuthorities(inherited));
  const signal = AbortSignal.any([question.signal, AbortSignal.timeout(moveMs)]);
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

interface Question {
  readonly settings: GitSettings;
  readonly refs: readonly string[];
  readonly signal: AbortSignal;
}

/** The server told git to look elsewhere. */
interface Moved {
  readonly kind: "moved";
  /** What opened the old place. */
  readonly authorization?: string;
}

const unopenedTrouble: Record<Unopened["trouble"], SourceTrouble> = {
  refused: "refused",
  credentials: "auth",
  unresolved: "unreachable",
};

const patience: readonly GitConfigLine[] = [["http.lowSpeedTime", "30"]];

async function listRefs(remote: SignedIn, question: Question): Promise<GitRefs | Moved> {
  const { policy, inherited = {} } = question.settings;
  const surroundings = { home: tmpdir(), policy, inherited };
  const opened = await openRepository(remote, { surroundings, settings: patience });
  if (opened.kind === "unopened") return failed(unopenedTrouble[opened.trouble], opened.message);
  try {
    return await ask(opened, question);
  } finally {
    await opened.dispose();
  }
}

async function ask(repository: OpenRepository, { settings, refs, signal }: Question): Promise<GitRefs | Moved> {
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
  if (end.kind === "late") return failed("unreachable", "the repository did not answer in time");
  if (end.code === 0) return { kind: "listed", commits: parseRefs(end.stdout) };
  const explained = explainGit(end.stderr);
  if (!explained) return failed("unreachable", "the repository cannot be reached");
  if (explained.trouble === "moved") return { kind: "moved", ...(authorization !== undefined && { authorization }) };
  return failed(troubles[explained.trouble], explained.message);
}

const troubles: Record<Exclude<GitTrouble, "moved">, SourceTrouble> = {
  credentials: "auth",
  untrusted: "refused",
  noRepository: "notFound",
  noRevision: "branchMissing",
  other: "unreachable",
};

/** A tag's commit is listed under its name and `^{}`. */
function patterns(refs: readonly string[]): string[] {
  if (refs.length > mostNames) return [];
  return refs.flatMap((ref) => (ref.startsWith("refs/tags/") ? [ref, `${ref}^{}`] : [ref]));
}

/** An annotated tag stands for the commit that it points to. */
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
