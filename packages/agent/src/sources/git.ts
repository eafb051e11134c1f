/**
 * A git repository: fetched into a store of objects beside the workspace, then written out as a fresh tree. The next
 * commit costs what changed; a fetch that fails leaves the workspace as it was.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assertNever, type GitSource } from "@pko/rpc";
import { coerce, gte } from "semver";
import {
  explainGit,
  findMoved,
  trustedAuthorities,
  type GitSurroundings,
  type GitTrouble,
  type NetworkPolicy,
  type OpenRepository,
} from "@pko/git";
import { requestFailure, statusFailure } from "../net/http.ts";
import { done, failed, type Failure, type Outcome } from "../outcome.ts";
import { lastLines } from "../system/clean-text.ts";
import { excerptOfErrors, runCommand, type CommandEnd } from "../system/command.ts";
import { isDirectory } from "../system/files.ts";
import type { Excerpt, Redactor } from "../system/redact.ts";
import { localGitEnvironment, openSource } from "./git-environment.ts";
import { parseCommit, parseRef } from "./git-ref.ts";

export interface GitContext {
  readonly git: string;
  /** A folder of the agent's own, for objects and credentials. */
  readonly state: string;
  readonly policy: NetworkPolicy;
  readonly inherited: NodeJS.ProcessEnv;
  readonly redactor: Redactor;
  readonly signal: AbortSignal;
}

interface Fetched {
  readonly commit: string;
  /** Writes the tree into an empty folder. */
  checkout(folder: string): Promise<Outcome<undefined>>;
  /** Makes the repository's own idea of what is checked out follow, once the folder is in its place. */
  settle(): Promise<void>;
}

/** Where credentials lie while git needs them, within the agent's folder. */
export const gitHome = "git-home";

const settingsFiles = ["Pulumi.*.yaml", "Pulumi.*.yml"];

/** Each fetch leaves a pack of two or three files. Beyond this many it is quicker to begin anew. */
const maxPackFiles = 200;

const fetchTimeoutMs = 15 * 60_000;
const localTimeoutMs = 5 * 60_000;

export async function fetchGit(source: GitSource, context: GitContext): Promise<Outcome<Fetched>> {
  const wanted = parseWanted(source);
  if (!wanted.ok) return wanted;
  const repository = new Repository(source, context);
  const ready = await repository.init();
  if (!ready.ok) return ready;
  const { commit } = wanted.value;
  const there = commit !== undefined && (await repository.has(commit, source.shallow === false));
  const fetched = there ? done(commit) : await fetchRemote(source, wanted.value, repository);
  if (!fetched.ok) return fetched;
  return done({
    commit: fetched.value,
    checkout: (folder) => repository.checkout(fetched.value, folder),
    settle: () => repository.settle(fetched.value),
  });
}

interface Wanted {
  readonly commit: string | undefined;
  readonly refs: readonly string[];
}

function parseWanted(source: GitSource): Outcome<Wanted> {
  if (source.commit === undefined && source.ref === undefined) {
    return failed("sourceInvalid", "a git source needs a commit or a ref");
  }
  const commit = source.commit === undefined ? done(undefined) : parseCommit(source.commit);
  if (!commit.ok) return commit;
  const refs = source.ref === undefined ? done([]) : parseRef(source.ref);
  return refs.ok ? done({ commit: commit.value, refs: refs.value }) : refs;
}

async function fetchRemote(source: GitSource, wanted: Wanted, repository: Repository): Promise<Outcome<string>> {
  const { context } = repository;
  const opened = await openSource(source, repository.setting);
  if (!opened.ok) return opened;
  const remote = opened.value;
  try {
    context.redactor.add(...remote.secrets);
    const fetched = await repository.fetch(remote, wanted);
    if (fetched.ok || !hasMoved(fetched.failure) || !repository.mayMove()) return fetched;
  } finally {
    await remote.dispose();
  }
  const moved = await followMove(source, remote, context);
  if (!moved.ok) return moved;
  // Credentials stay with the origin they are for.
  const { auth, ...anonymous } = source;
  const isSame = moved.value.origin === new URL(remote.remote).origin;
  const next = auth && isSame ? { ...anonymous, auth } : anonymous;
  return await fetchRemote({ ...next, url: moved.value.href }, wanted, repository);
}

async function followMove(source: GitSource, from: OpenRepository, context: GitContext): Promise<Outcome<URL>> {
  const { policy, signal, inherited } = context;
  const ca = source.ca ?? (await trustedAuthorities(inherited));
  const moved = await findMoved(from.remote, {
    policy,
    signal,
    environment: inherited,
    ...(from.authorization !== undefined && { authorization: from.authorization }),
    ...(ca !== undefined && { ca }),
  });
  switch (moved.kind) {
    case "moved":
      return done(moved.url);
    case "status":
      return statusFailure("the repository", moved.status);
    case "refused":
    case "unreachable":
      return requestFailure(moved);
    default:
      return assertNever(moved);
  }
}

class Repository {
  readonly context: GitContext;
  readonly setting: GitSurroundings;
  readonly #folder: string;
  readonly #shallow: boolean;
  #moved = false;

  constructor(source: GitSource, context: GitContext) {
    this.context = context;
    this.setting = { home: join(context.state, gitHome), policy: context.policy, inherited: context.inherited };
    const id = createHash("sha256").update(source.url).digest("hex").slice(0, 16);
    this.#folder = join(context.state, "git", id);
    this.#shallow = source.shallow !== false;
  }

  /** Once: it is found where nothing redirects any more. A server that redirects again plays games. */
  mayMove(): boolean {
    const may = !this.#moved;
    this.#moved = true;
    return may;
  }

  /** Only the workspace's present repository is kept: another URL is another store. */
  async init(): Promise<Outcome<undefined>> {
    const parent = join(this.#folder, "..");
    await mkdir(parent, { recursive: true });
    for (const other of await readdir(parent)) {
      if (join(parent, other) !== this.#folder) await rm(join(parent, other), { recursive: true, force: true });
    }
    const packs = join(this.#folder, "objects", "pack");
    if (await isDirectory(packs)) {
      if ((await readdir(packs)).length < maxPackFiles) return done(undefined);
      await rm(this.#folder, { recursive: true, force: true });
    }
    const usable = await this.#checkGit();
    if (!usable.ok) return usable;
    const made = await this.#local(["init", "--quiet", "--bare", "--template=", this.#folder]);
    if (!made.ok) return made;
    const plain = await this.#local(["--git-dir", this.#folder, "config", "core.bare", "false"]);
    return plain.ok ? done(undefined) : plain;
  }

  /** Credentials and limits reach git through `GIT_CONFIG_COUNT`: one that does not know it would go without them. */
  async #checkGit(): Promise<Outcome<undefined>> {
    const version = await this.#local(["version"]);
    if (!version.ok) return version;
    const found = coerce(version.value);
    if (found && gte(found, "2.31.0")) return done(undefined);
    return failed("toolMissing", `the workspace's image has ${version.value.trim()}: 2.31 or later is needed`);
  }

  async has(commit: string, whole: boolean): Promise<boolean> {
    const found = await this.#repo(["cat-file", "-e", `${commit}^{commit}`]);
    if (!found.ok) return false;
    if (!whole) return true;
    const shallow = await this.#repo(["rev-parse", "--is-shallow-repository"]);
    return shallow.ok && shallow.value.trim() === "false";
  }

  async fetch(remote: OpenRepository, wanted: Wanted): Promise<Outcome<string>> {
    if (wanted.commit === undefined) return await this.#fetchRef(remote, wanted.refs);
    const direct = await this.#fetch(remote, [wanted.commit], this.#shallow ? ["--depth=1"] : await this.#whole());
    if (direct.ok) return await this.#verify(wanted.commit);
    if (direct.failure.reason !== "sourceNotFound") return direct;
    // A server that serves no bare commits: fetch what leads to it, with its history.
    const everything = ["+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/fetched/tags/*"];
    const specs = wanted.refs.length > 0 ? [await this.#advertised(remote, wanted.refs)] : [];
    const named = specs.flatMap((spec) => (spec?.ok ? [spec.value] : []));
    const found = await this.#fetch(remote, named.length > 0 ? named : everything, await this.#whole());
    return found.ok ? await this.#verify(wanted.commit) : found;
  }

  async #fetchRef(remote: OpenRepository, refs: readonly string[]): Promise<Outcome<string>> {
    const ref = await this.#advertised(remote, refs);
    if (!ref.ok) return ref;
    const target = "refs/fetched/target";
    const depth = this.#shallow ? ["--depth=1"] : await this.#whole();
    const fetched = await this.#fetch(remote, [`+${ref.value}:${target}`], depth);
    if (!fetched.ok) return fetched;
    const commit = await this.#repo(["rev-parse", "--verify", "--quiet", `${target}^{commit}`]);
    if (!commit.ok) return failed("sourceNotFound", `the ref ${ref.value} does not lead to a commit`);
    return done(commit.value.trim());
  }

  /** The first of the refs that the remote has. */
  async #advertised(remote: OpenRepository, refs: readonly string[]): Promise<Outcome<string>> {
    const listed = await this.#remote(remote, ["ls-remote", "--quiet", "--", remote.remote, ...refs]);
    if (!listed.ok) return listed;
    const names = new Set(listed.value.split("\n").map((line) => line.split("\t")[1]));
    const found = refs.find((ref) => names.has(ref));
    return found ? done(found) : failed("sourceNotFound", `the repository has no ${refs.join(" and no ")}`);
  }

  async #whole(): Promise<string[]> {
    const shallow = await this.#repo(["rev-parse", "--is-shallow-repository"]);
    return shallow.ok && shallow.value.trim() === "true" ? ["--unshallow"] : [];
  }

  async #fetch(remote: OpenRepository, specs: readonly string[], depth: readonly string[]): Promise<Outcome<string>> {
    const options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--force", ...depth];
    return await this.#remote(remote, ["fetch", ...options, "--", remote.remote, ...specs]);
  }

  async #verify(commit: string): Promise<Outcome<string>> {
    const found = await this.#repo(["cat-file", "-e", `${commit}^{commit}`]);
    return found.ok ? done(commit) : failed("sourceNotFound", `the repository has no commit ${commit}`);
  }

  async checkout(commit: string, folder: string): Promise<Outcome<undefined>> {
    const index = join(this.#folder, "index.next");
    await rm(index, { force: true });
    const args = ["--git-dir", this.#folder, "--work-tree", folder, "read-tree", "--reset", "-u", commit];
    const end = await this.#local(args, { cwd: folder, env: { GIT_INDEX_FILE: index } });
    if (!end.ok) return failed("sourceRefused", "the commit cannot be checked out", end.failure.lines);
    await writeFile(join(folder, ".git"), `gitdir: ${this.#folder}\n`);
    return done(undefined);
  }

  async settle(commit: string): Promise<void> {
    await rename(join(this.#folder, "index.next"), join(this.#folder, "index"));
    await this.#repo(["update-ref", "--no-deref", "HEAD", commit]);
    await this.#ignoreSettings();
  }

  /**
   * The settings files of stacks are replaced by links (pulumi/stack.ts): that is not to show as a change of the checkout,
   * which Pulumi records of each update. Nothing depends on it.
   */
  async #ignoreSettings(): Promise<void> {
    await mkdir(join(this.#folder, "info"), { recursive: true });
    await writeFile(join(this.#folder, "info", "exclude"), `${settingsFiles.join("\n")}\n`);
    const globs = settingsFiles.map((pattern) => `:(glob)**/${pattern}`);
    const listed = await this.#repo(["ls-files", "-z", "--", ...globs]);
    const files = listed.ok ? listed.value.split("\0").filter((file) => file !== "") : [];
    if (files.length > 0) await this.#repo(["update-index", "--skip-worktree", "--", ...files]);
  }

  async #repo(args: readonly string[]): Promise<Outcome<string>> {
    return await this.#local(["--git-dir", this.#folder, ...args]);
  }

  async #local(
    args: readonly string[],
    options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<Outcome<string>> {
    const end = await runCommand({
      file: this.context.git,
      args,
      cwd: options.cwd ?? this.context.state,
      env: { ...localGitEnvironment(this.setting), ...options.env },
      timeoutMs: localTimeoutMs,
      signal: this.context.signal,
    });
    return this.#read(end);
  }

  async #remote(remote: OpenRepository, args: readonly string[]): Promise<Outcome<string>> {
    const end = await runCommand({
      file: this.context.git,
      args: ["--git-dir", this.#folder, ...args],
      cwd: this.context.state,
      env: remote.env,
      timeoutMs: fetchTimeoutMs,
      signal: this.context.signal,
    });
    return this.#read(end);
  }

  #read(end: CommandEnd): Outcome<string> {
    switch (end.kind) {
      case "exited":
        if (end.code === 0) return done(end.stdout);
        return explain(excerptOfErrors(end), this.context.redactor);
      case "missing":
        return failed("toolMissing", "git is not installed in the workspace's image");
      case "timedOut":
        return failed("sourceUnavailable", "git did not finish in time");
      case "aborted":
        return failed("superseded", "a newer request took over");
      default:
        return assertNever(end);
    }
  }
}

const reasons: Record<GitTrouble, Failure["reason"]> = {
  credentials: "sourceUnauthorized",
  untrusted: "sourceRefused",
  noRepository: "sourceNotFound",
  noRevision: "sourceNotFound",
  moved: "sourceUnavailable",
  other: "sourceUnavailable",
};

function explain(stderr: Excerpt, redactor: Redactor): Outcome<never> {
  // What the server said is left out: at an address that should not have been asked, it could be anything.
  const isGits = (line: string): boolean => !line.startsWith("remote:");
  const lines = lastLines(redactor.clean(stderr), Infinity).filter(isGits).slice(-10);
  const { trouble, message } = explainGit(stderr.text) ?? {
    trouble: "other" as const,
    message: "git could not fetch the repository",
  };
  return failed(reasons[trouble], message, lines);
}

function hasMoved(failure: Failure): boolean {
  return failure.lines.some((line) => /returned error: 30[12378]/.test(line));
}
