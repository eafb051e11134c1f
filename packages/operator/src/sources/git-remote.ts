/**
 * One look at a repository's refs by `git ls-remote`: no configuration but ours, no hooks, no helpers, no prompt, two
 * protocols. Credentials live in the environment and in files of mode 0600, never in arguments or in a URL.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { GitHubAppTokens } from "../workspace/prepare-request.ts";
import {
  gitEnvironment,
  gitSettings,
  resolveHost,
  settingVariables,
  type GitConfigLine,
  type NetworkPolicy,
} from "@pko/git";
import { runGit, type GitEnd } from "./git-command.ts";
import type { GitCredentials } from "./git-credentials.ts";
import { followMove } from "./git-move.ts";
import type { SourceTrouble } from "./source-view.ts";

export interface GitRemote {
  readonly url: string;
  readonly credentials: GitCredentials;
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
    const listed = await listRefs(signedIn.remote, { settings, refs, signal });
    if (listed.kind !== "moved") return listed;
    const moved = await movedTo(signedIn.remote, settings, signal);
    if (!moved) return failed("refused", "the repository's address leads elsewhere, and not to a repository");
    const again = await listRefs(moved, { settings, refs, signal });
    return again.kind === "moved"
      ? failed("refused", "the repository's address leads elsewhere again and again")
      : again;
  };
}

type SignedIn = { readonly kind: "signedIn"; readonly remote: GitRemote } | Failed;

async function signIn(remote: GitRemote, { githubApps }: GitSettings, signal: AbortSignal): Promise<SignedIn> {
  const { url, credentials } = remote;
  if (credentials.kind !== "githubApp") return { kind: "signedIn", remote };
  if (!githubApps) return { kind: "failed", trouble: "refused", message: "this operator signs in as no GitHub App" };
  const { kind: _, ...app } = credentials;
  const token = await githubApps.tokenFor({ ...app, repository: url }, signal);
  if (!token.ok) return { kind: "failed", trouble: "auth", message: token.message };
  const basic = { kind: "basic", username: "x-access-token", password: token.token } as const;
  return { kind: "signedIn", remote: { url, credentials: basic } };
}

/** With the credentials only where the origin is the same. */
async function movedTo(remote: GitRemote, settings: GitSettings, signal: AbortSignal): Promise<GitRemote | undefined> {
  const from = URL.parse(remote.url);
  if (!from) return undefined;
  const basic = basicOf(remote.credentials, from);
  const file = settings.inherited?.["GIT_SSL_CAINFO"];
  try {
    const ca = file === undefined ? undefined : await readFile(file, "utf8");
    const plain = withoutCredentials(from);
    const to = await followMove({
      from: plain,
      policy: settings.policy,
      signal,
      ...(basic !== undefined && { authorization: `Basic ${basic}` }),
      ...(ca !== undefined && { ca }),
    });
    if (!to) return undefined;
    if (to.origin !== plain.origin) return { url: to.href, credentials: { kind: "none" } };
    to.username = from.username;
    to.password = from.password;
    return { url: to.href, credentials: remote.credentials };
  } catch {
    return undefined;
  }
}

interface Question {
  readonly settings: GitSettings;
  readonly refs: readonly string[];
  readonly signal: AbortSignal;
}

async function listRefs(remote: GitRemote, { settings, refs, signal }: Question): Promise<GitRefs | Moved> {
  const place = await placeOf(remote.url, settings);
  if (place.kind === "failed") return place;
  const folder = await mkdtemp(join(tmpdir(), "operator-git-"));
  try {
    const access = await accessOf(remote, place, folder);
    if (access.kind === "failed") return access;
    const end = await runGit({
      git: settings.git ?? "git",
      args: ["ls-remote", "--quiet", "--", place.spelled, ...patterns(refs)],
      cwd: folder,
      env: {
        ...gitEnvironment({ home: folder, policy: settings.policy, inherited: settings.inherited ?? {} }),
        ...access.env,
        ...settingVariables([...gitSettings(settings.policy), ["http.lowSpeedTime", "30"], ...access.config]),
      },
      timeoutMs: settings.timeoutMs ?? 60_000,
      signal,
    });
    return readEnd(end);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A tag's commit is listed under its name and `^{}`. */
function patterns(refs: readonly string[]): string[] {
  if (refs.length > mostNames) return [];
  return refs.flatMap((ref) => (ref.startsWith("refs/tags/") ? [ref, `${ref}^{}`] : [ref]));
}

interface Place {
  readonly kind: "place";
  readonly transport: "http" | "ssh";
  /** What git is given: without credentials. */
  readonly spelled: string;
  readonly url?: URL;
  readonly host: string;
  readonly port: number;
  readonly addresses: readonly string[];
}

type Failed = Extract<GitRefs, { kind: "failed" }>;

const proxies = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

async function placeOf(spelled: string, settings: GitSettings): Promise<Place | Failed> {
  const parsed = parse(spelled, settings.policy);
  if (!parsed) return { kind: "failed", trouble: "refused", message: "the repository's address is not https or ssh" };
  const resolved = await resolveHost(parsed.host, settings.policy);
  // Behind a proxy, names are the proxy's to resolve.
  const isProxied = parsed.transport === "http" && proxies.some((name) => settings.inherited?.[name]);
  if (resolved.kind === "forbidden") return { kind: "failed", trouble: "refused", message: resolved.message };
  if (resolved.kind === "unknown" && !isProxied) {
    return { kind: "failed", trouble: "unreachable", message: resolved.message };
  }
  return { kind: "place", ...parsed, addresses: resolved.kind === "resolved" ? resolved.addresses : [] };
}

function parse(spelled: string, policy: NetworkPolicy): Omit<Place, "addresses" | "kind"> | undefined {
  // `ext::sh -c …` runs a command, `HELPER::…` a program of that name. An IPv6 address stands in brackets.
  if (spelled.startsWith("-") || /\s/.test(spelled) || spelled.replaceAll(/\[[^\]]*\]/g, "").includes("::")) {
    return undefined;
  }
  if (!spelled.includes("://")) return parseScp(spelled);
  const url = URL.parse(spelled);
  if (!url || url.hostname === "" || url.hostname.startsWith("-")) return undefined;
  if (url.protocol === "ssh:") {
    return { transport: "ssh", spelled, host: url.hostname, port: Number(url.port || 22) };
  }
  if (url.protocol !== "https:" && !(policy.allowHttp && url.protocol === "http:")) return undefined;
  const plain = withoutCredentials(url);
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  return { transport: "http", spelled: plain.href, url, host: url.hostname, port };
}

function parseScp(spelled: string): Omit<Place, "addresses" | "kind"> | undefined {
  const match = /^(?:(?<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@)?(?<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?<path>[^-].*)$/.exec(
    spelled,
  );
  return match?.groups?.["host"] ? { transport: "ssh", spelled, host: match.groups["host"], port: 22 } : undefined;
}

interface Access {
  readonly kind: "access";
  readonly config: readonly GitConfigLine[];
  readonly env: Readonly<Record<string, string>>;
}

async function accessOf({ credentials }: GitRemote, place: Place, folder: string): Promise<Access | Failed> {
  if (place.transport === "ssh") return await sshAccess(credentials, place, folder);
  if (credentials.kind === "ssh") {
    return { kind: "failed", trouble: "refused", message: "an ssh key cannot open an https repository" };
  }
  return httpAccess(credentials, place);
}

function httpAccess(credentials: GitCredentials, { url, host, port, addresses }: Place): Access | Failed {
  const config: GitConfigLine[] = [];
  const basic = url && basicOf(credentials, url);
  // For this origin alone.
  if (basic) config.push([`http.${url.origin}/.extraHeader`, `Authorization: Basic ${basic}`]);
  const pinned = addresses.map((address) => (address.includes(":") ? `[${address}]` : address));
  if (pinned.length > 0 && addresses[0] !== host && !host.startsWith("[")) {
    config.push(["http.curloptResolve", `${host}:${port}:${pinned.join(",")}`]);
  }
  return { kind: "access", config, env: {} };
}

/** Those of the Secrets, or of the address itself. */
function basicOf(credentials: GitCredentials, url: URL): string | undefined {
  const { username, password } =
    credentials.kind === "basic" ? credentials : { username: decoded(url.username), password: decoded(url.password) };
  return username || password ? Buffer.from(`${username}:${password}`).toString("base64") : undefined;
}

function withoutCredentials(url: URL): URL {
  const plain = new URL(url);
  plain.username = "";
  plain.password = "";
  return plain;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function sshAccess(credentials: GitCredentials, place: Place, folder: string): Promise<Access | Failed> {
  if (credentials.kind !== "ssh") {
    return { kind: "failed", trouble: "auth", message: "an ssh repository needs an ssh key: set gitAuth.sshAuth" };
  }
  const file = async (name: string, text: string, mode = 0o600): Promise<string> => {
    const path = join(folder, name);
    await writeFile(path, text, { mode });
    return path;
  };
  const key = await file("key", `${credentials.privateKey.trimEnd()}\n`);
  const known = await file("known_hosts", `${credentials.knownHosts.trimEnd()}\n`);
  const env: Record<string, string> = {
    GIT_SSH_VARIANT: "ssh",
    GIT_SSH_COMMAND: sshCommand(place, { key, known }),
  };
  if (credentials.passphrase !== undefined) {
    env["OPERATOR_SSH_PASSPHRASE"] = credentials.passphrase;
    env["SSH_ASKPASS"] = await file("askpass", `#!/bin/sh\nprintf '%s\\n' "$OPERATOR_SSH_PASSPHRASE"\n`, 0o700);
    env["SSH_ASKPASS_REQUIRE"] = "force";
  }
  return { kind: "access", config: [], env };
}

/** The address that was looked at is the one dialled; the host's key is looked up under the host's name. */
function sshCommand({ host, port, addresses }: Place, files: { key: string; known: string }): string {
  const name = host.replaceAll(/[[\]]/g, "");
  const options = [
    `IdentityFile=${files.key}`,
    "IdentitiesOnly=yes",
    "IdentityAgent=none",
    `UserKnownHostsFile=${files.known}`,
    "GlobalKnownHostsFile=/dev/null",
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "VerifyHostKeyDNS=no",
    `HostKeyAlias=${port === 22 ? name : `[${name}]:${port}`}`,
    `HostName=${addresses[0] ?? name}`,
    "PasswordAuthentication=no",
    "KbdInteractiveAuthentication=no",
    "ForwardAgent=no",
    "PermitLocalCommand=no",
    "ProxyCommand=none",
    "ConnectTimeout=20",
  ];
  return ["ssh", "-F", "/dev/null", ...options.flatMap((option) => ["-o", `'${option}'`])].join(" ");
}

/** The server told git to look elsewhere. */
type Moved = { readonly kind: "moved" };

function readEnd(end: GitEnd): GitRefs | Moved {
  if (end.kind === "missing") return failed("unreachable", "git is not installed in the operator's image");
  if (end.kind === "late") return failed("unreachable", "the repository did not answer in time");
  if (end.code !== 0) return /error: 30[12378]/.test(end.stderr) ? { kind: "moved" } : explain(end.stderr);
  return { kind: "listed", commits: parseRefs(end.stdout) };
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

const explanations: readonly (readonly [RegExp, SourceTrouble, string])[] = [
  [
    /host key verification failed|no .* host key is known/i,
    "refused",
    "the ssh host's key is not in known_hosts: put the host's key under known_hosts into the Secret of the ssh key",
  ],
  [
    /authentication failed|could not read (username|password)|terminal prompts disabled|error: 40[13]|access denied|permission denied/i,
    "auth",
    "the repository refuses the credentials",
  ],
  [/incorrect passphrase|invalid format|error in libcrypto|load key/i, "auth", "the ssh key cannot be used"],
  [
    /repository .*not found|error: 404|does not (appear to be|exist)|not a git repository/i,
    "notFound",
    "the repository is not there, or may not be seen with these credentials",
  ],
];

/** What the server said is left out: at an address that should not have been asked, it could be anything. */
function explain(stderr: string): GitRefs {
  for (const [pattern, trouble, message] of explanations) if (pattern.test(stderr)) return failed(trouble, message);
  return failed("unreachable", "the repository cannot be reached");
}
