/**
 * Fetches a Git repository into an object store beside the workspace, then writes a new tree. The next commit transfers
 * only what changed, and a failed fetch does not change the workspace.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { GitSource } from "@pko/rpc";
import { coerce, gte } from "semver";
import {
  explainGit,
  findMoved,
  globSelector,
  trustedCaCertificates,
  type GitProcessContext,
  type GitProblem,
  type NetworkPolicy,
  type OpenRepository,
} from "@pko/git";
import { requestFailure, statusFailure } from "../net/http.ts";
import { done, failed, type Failure, type Outcome } from "../outcome.ts";
import { lastLines } from "../system/clean-text.ts";
import { stderrExcerpt, runCommand, type CommandEnd } from "../system/command.ts";
import { isDirectory } from "../system/files.ts";
import type { Excerpt, Redactor } from "../system/redact.ts";
import { parseDifferences, type Difference } from "./git-differences.ts";
import { localGitEnvironment, openSource } from "./git-environment.ts";
import { parseCommit, parseRef } from "./git-ref.ts";

export interface GitContext {
  readonly git: string;
  /** The agent's folder, for objects and credentials. */
  readonly state: string;
  readonly policy: NetworkPolicy;
  readonly inherited: NodeJS.ProcessEnv;
  readonly redactor: Redactor;
  readonly signal: AbortSignal;
}

interface Fetched {
  readonly commit: string;
  /** The hash of the commit's files: two commits with the same files have the same tree. */
  readonly tree: string;
  /** Writes the tree into an empty folder. */
  checkout(folder: string): Promise<Outcome<undefined>>;
  /** Updates HEAD and the index after the folder was moved into place. */
  settle(): Promise<void>;
}

/** The subfolder of the agent's folder for credentials while git runs. */
export const gitHome = "git-home";

const settingsFiles = ["Pulumi.*.yaml", "Pulumi.*.yml"];

/** Each fetch adds a pack of two or three files. Beyond this number a new clone is faster. */
const maxPackFiles = 200;

const fetchTimeoutMs = 15 * 60_000;
const localTimeoutMs = 5 * 60_000;

export async function fetchGit(source: GitSource, context: GitContext): Promise<Outcome<Fetched>> {
  const wanted = parseRevision(source);
  if (!wanted.ok) return wanted;
  const repository = new Repository(source, context);
  const ready = await repository.init();
  if (!ready.ok) return ready;
  const { commit } = wanted.value;
  const isPresent = commit !== undefined && (await repository.has(commit, source.shallow === false));
  const fetched = isPresent ? done(commit) : await fetchRemote(source, wanted.value, repository);
  if (!fetched.ok) return fetched;
  const tree = await repository.tree(fetched.value);
  if (!tree.ok) return tree;
  return done({
    commit: fetched.value,
    tree: tree.value,
    checkout: (folder) => repository.checkout(fetched.value, folder),
    settle: () => repository.settle(fetched.value),
  });
}

/**
 * The commit of `compareWith`, if no file that its filters select differs from it. Undefined if one does, or if that is not
 * known: then the update runs.
 */
export async function unchangedSince(
  source: GitSource,
  commit: string,
  context: GitContext,
): Promise<string | undefined> {
  if (!source.compareWith) return undefined;
  const { commit: earlier, pathFilters } = source.compareWith;
  const parsed = parseCommit(earlier);
  const repository = new Repository(source, context);
  if (!parsed.ok || !(await repository.has(commit, false))) return undefined;
  if (!(await repository.has(parsed.value, false))) {
    await fetchRemote(source, { commit: parsed.value, refs: [], isOptional: true }, repository);
  }
  const differences = await repository.differences(parsed.value, commit);
  const isSelected = globSelector(pathFilters);
  return differences?.every(({ path, isSubmodule }) => !isSubmodule && !isSelected(path)) ? earlier : undefined;
}

interface WantedRevision {
  readonly commit: string | undefined;
  readonly refs: readonly string[];
  /** Not worth the whole history of the repository. */
  readonly isOptional?: boolean;
}

function parseRevision(source: GitSource): Outcome<WantedRevision> {
  if (source.commit === undefined && source.ref === undefined) {
    return failed("sourceInvalid", "the Git source has neither a commit nor a ref; set one of them");
  }
  const commit = source.commit === undefined ? done(undefined) : parseCommit(source.commit);
  if (!commit.ok) return commit;
  const refs = source.ref === undefined ? done([]) : parseRef(source.ref);
  return refs.ok ? done({ commit: commit.value, refs: refs.value }) : refs;
}

async function fetchRemote(
  source: GitSource,
  wanted: WantedRevision,
  repository: Repository,
): Promise<Outcome<string>> {
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
  // Send credentials only to their own origin.
  const { auth, ...anonymous } = source;
  const isSame = moved.value.origin === new URL(remote.remote).origin;
  const next = auth && isSame ? { ...anonymous, auth } : anonymous;
  return await fetchRemote({ ...next, url: moved.value.href }, wanted, repository);
}

async function followMove(source: GitSource, from: OpenRepository, context: GitContext): Promise<Outcome<URL>> {
  const { policy, signal, inherited } = context;
  const ca = source.ca ?? (await trustedCaCertificates(inherited));
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
  }
}

interface LocalOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

class Repository {
  readonly context: GitContext;
  readonly setting: GitProcessContext;
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

  /** Only once: `findMoved` follows all redirects, so a second move is a misbehaving server. */
  mayMove(): boolean {
    const isFirst = !this.#moved;
    this.#moved = true;
    return isFirst;
  }

  /** Deletes the object stores of other URLs: only the current repository is kept. */
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
    const created = await this.#local(["init", "--quiet", "--bare", "--template=", this.#folder]);
    if (!created.ok) return created;
    const plain = await this.#local(["--git-dir", this.#folder, "config", "core.bare", "false"]);
    return plain.ok ? done(undefined) : plain;
  }

  /** Git gets credentials and limits through `GIT_CONFIG_COUNT`, which older versions ignore. */
  async #checkGit(): Promise<Outcome<undefined>> {
    const version = await this.#local(["version"]);
    if (!version.ok) return version;
    const found = coerce(version.value);
    if (found && gte(found, "2.31.0")) return done(undefined);
    return failed(
      "toolMissing",
      `the workspace's image has ${version.value.trim()}, but git 2.31 or later is needed; use a newer image`,
    );
  }

  async has(commit: string, withHistory: boolean): Promise<boolean> {
    const found = await this.#repo(["cat-file", "-e", `${commit}^{commit}`]);
    if (!found.ok) return false;
    if (!withHistory) return true;
    const shallow = await this.#repo(["rev-parse", "--is-shallow-repository"]);
    return shallow.ok && shallow.value.trim() === "false";
  }

  async fetch(remote: OpenRepository, wanted: WantedRevision): Promise<Outcome<string>> {
    if (wanted.commit === undefined) return await this.#fetchRef(remote, wanted.refs);
    const direct = await this.#fetch(
      remote,
      [wanted.commit],
      this.#shallow ? ["--depth=1"] : await this.#fullHistory(),
    );
    if (direct.ok) return await this.#verify(wanted.commit);
    if (direct.failure.reason !== "sourceNotFound" || wanted.isOptional) return direct;
    // The server does not serve commits by hash: fetch the refs that contain it, with their history.
    const everything = ["+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/fetched/tags/*"];
    const specs = wanted.refs.length > 0 ? [await this.#advertised(remote, wanted.refs)] : [];
    const named = specs.flatMap((spec) => (spec?.ok ? [spec.value] : []));
    const found = await this.#fetch(remote, named.length > 0 ? named : everything, await this.#fullHistory());
    return found.ok ? await this.#verify(wanted.commit) : found;
  }

  async #fetchRef(remote: OpenRepository, refs: readonly string[]): Promise<Outcome<string>> {
    const ref = await this.#advertised(remote, refs);
    if (!ref.ok) return ref;
    const target = "refs/fetched/target";
    const depth = this.#shallow ? ["--depth=1"] : await this.#fullHistory();
    const fetched = await this.#fetch(remote, [`+${ref.value}:${target}`], depth);
    if (!fetched.ok) return fetched;
    const commit = await this.#repo(["rev-parse", "--verify", "--quiet", `${target}^{commit}`]);
    if (!commit.ok) return failed("sourceNotFound", `the ref ${ref.value} does not point to a commit`);
    return done(commit.value.trim());
  }

  /** The first of the refs that the remote has. */
  async #advertised(remote: OpenRepository, refs: readonly string[]): Promise<Outcome<string>> {
    const listed = await this.#remote(remote, ["ls-remote", "--quiet", "--", remote.remote, ...refs]);
    if (!listed.ok) return listed;
    const names = new Set(listed.value.split("\n").map((line) => line.split("\t")[1]));
    const found = refs.find((ref) => names.has(ref));
    return found
      ? done(found)
      : failed("sourceNotFound", `the repository has no ${refs.join(" and no ")}; check the branch or tag`);
  }

  async #fullHistory(): Promise<string[]> {
    const shallow = await this.#repo(["rev-parse", "--is-shallow-repository"]);
    return shallow.ok && shallow.value.trim() === "true" ? ["--unshallow"] : [];
  }

  async #fetch(remote: OpenRepository, specs: readonly string[], depth: readonly string[]): Promise<Outcome<string>> {
    const options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--force", ...depth];
    return await this.#remote(remote, ["fetch", ...options, "--", remote.remote, ...specs]);
  }

  async #verify(commit: string): Promise<Outcome<string>> {
    const found = await this.#repo(["cat-file", "-e", `${commit}^{commit}`]);
    return found.ok
      ? done(commit)
      : failed("sourceNotFound", `the repository has no commit ${commit}; check the commit`);
  }

  async tree(commit: string): Promise<Outcome<string>> {
    const tree = await this.#repo(["rev-parse", "--verify", "--quiet", `${commit}^{tree}`]);
    return tree.ok ? done(tree.value.trim()) : tree;
  }

  /** Undefined if a commit is missing, or if too many files differ. */
  async differences(from: string, to: string): Promise<readonly Difference[] | undefined> {
    const range = ["-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to];
    const end = await this.#run(["--git-dir", this.#folder, "diff-tree", ...range]);
    return end.kind === "exited" && end.code === 0 && !end.cut?.stdout ? parseDifferences(end.stdout) : undefined;
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
   * Links replace the settings files of stacks (pulumi/stack.ts). They must not appear as local changes, which Pulumi
   * records with each update. A failure here has no other effect.
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

  async #local(args: readonly string[], options: LocalOptions = {}): Promise<Outcome<string>> {
    return this.#read(await this.#run(args, options));
  }

  async #run(args: readonly string[], options: LocalOptions = {}): Promise<CommandEnd> {
    return await runCommand({
      file: this.context.git,
      args,
      cwd: options.cwd ?? this.context.state,
      env: { ...localGitEnvironment(this.setting), ...options.env },
      timeoutMs: localTimeoutMs,
      signal: this.context.signal,
    });
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
        return explain(stderrExcerpt(end), this.context.redactor);
      case "missing":
        return failed("toolMissing", "the workspace's image has no git; use an image with git");
      case "timedOut":
        return failed("sourceUnavailable", "git did not finish in time; the operator retries");
      case "aborted":
        return failed("superseded", "a newer request replaced this one");
    }
  }
}

const reasons: Record<GitProblem, Failure["reason"]> = {
  credentials: "sourceUnauthorized",
  untrusted: "sourceRefused",
  noRepository: "sourceNotFound",
  noRevision: "sourceNotFound",
  moved: "sourceUnavailable",
  other: "sourceUnavailable",
};

function explain(stderr: Excerpt, redactor: Redactor): Outcome<never> {
  // Omit the server's own output, because it is not trusted.
  const isFromGit = (line: string): boolean => !line.startsWith("remote:");
  const lines = lastLines(redactor.clean(stderr), Infinity).filter(isFromGit).slice(-10);
  const { problem, message } = explainGit(stderr.text) ?? {
    problem: "other" as const,
    message: "git cannot fetch the repository; the operator retries",
  };
  return failed(reasons[problem], message, lines);
}

function hasMoved(failure: Failure): boolean {
  return failure.lines.some((line) => /returned error: 30[12378]/.test(line));
}
