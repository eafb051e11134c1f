/**
 * The steps of `prepare`, in order. Each step is skipped if the state records it as done, and removes its record before it
 * starts: after an interruption it is repeated.
 *
 *   source → install → stack → config → ready
 *
 * The steps `stack` and `config` run for each listed stack. Without stacks, the workspace is ready after `install`.
 */
import { realpath, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import type { PreparePhase, Prepared, PrepareRequest, Source, StackSettings } from "@pko/rpc";
import type { Options } from "../options.ts";
import { done, failed, type Failure, type Outcome } from "../outcome.ts";
import type { PulumiCli } from "../pulumi/cli.ts";
import {
  dependencyKey,
  installDependencies,
  installsIntoCheckout,
  isWritableFolder,
} from "../pulumi/project/dependencies.ts";
import { loadProject, type Project } from "../pulumi/project/project.ts";
import type { SecretStore } from "../pulumi/project/secrets.ts";
import {
  configureStack,
  publishSettings,
  selectStack,
  stackPaths,
  type StackContext,
} from "../pulumi/project/stack.ts";
import { checkVersion } from "../pulumi/version.ts";
import { unchangedSince, type GitContext } from "../sources/git.ts";
import { isLocal, obtainSource, sourceDir, sourceKey } from "../sources/source.ts";
import { isDirectory } from "../system/files.ts";
import type { Log } from "../system/log.ts";
import { checkOut, projectFolder, removeLeftovers } from "./checkout.ts";
import { linkWorkspace, moveOldCheckout, shareSelection, unlinkWorkspace } from "./shell.ts";
import type { Ready, SelectedStack, StateFile, WorkspaceState } from "./state.ts";

export interface StepContext {
  readonly options: Options;
  readonly inherited: NodeJS.ProcessEnv;
  readonly cli: PulumiCli;
  readonly secrets: SecretStore;
  readonly state: StateFile;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly onPhase: (phase: PreparePhase) => void;
  /** Identifies the request. */
  readonly preparation: string;
}

type StepsOutcome =
  | { readonly ok: true; readonly prepared: Prepared }
  | { readonly ok: false; readonly phase: PreparePhase; readonly failure: Failure };

interface PlacedSource {
  readonly root: string;
  readonly revision: string;
  /** Identifies the files; absent for a folder that is used in place. */
  readonly contents?: string | undefined;
  readonly changed: boolean;
  /** Folders with dependencies from the previous checkout. */
  readonly carried: readonly string[];
  readonly inPlace: boolean;
}

export async function prepareWorkspace(request: PrepareRequest, context: StepContext): Promise<StepsOutcome> {
  const end = await runSteps(request, context);
  if (!end.ok && end.failure.reason === "invalidToken") context.cli.signOut();
  return end;
}

async function runSteps(request: PrepareRequest, context: StepContext): Promise<StepsOutcome> {
  const { state, preparation } = context;
  const clock = new PhaseClock(context.onPhase);
  const { ready: _, ...rest } = await state.read();
  await state.write(rest);

  clock.start("source");
  // Wait for both, even if one fails: a leftover write could interfere with the next preparation.
  const [checking, placing] = await Promise.allSettled([usableCli(request, context), placeProject(request, context)]);
  const [usable, source] = [unwrap(checking), unwrap(placing)];
  if (!usable.ok) return { ok: false, phase: "source", failure: usable.failure };
  if (!source.ok) return { ok: false, phase: "source", failure: source.failure };
  const { placed, project } = source.value;
  const unchanged = await comparison(request.source, placed.revision, context);

  const backend = project.backendUrl;
  // Dependencies may come from the organization's private registry.
  const signedIn = await context.cli.signIn({ backend, purpose: "command", signal: context.signal });
  if (!signedIn.ok) return { ok: false, phase: "stack", failure: signedIn.failure };

  clock.start("install");
  // A project without a program is only destroyed and has no dependencies.
  const hasNoProgram = request.source.kind === "project";
  const installed = hasNoProgram ? done(false) : await install(project, placed, context);
  if (!installed.ok) return { ok: false, phase: "install", failure: installed.failure };

  clock.start("stack");
  const stackContext = { ...context, state: context.options.paths.state };
  const selected = await selectStacks(request.stacks, project, { state, stackContext });
  if (!selected.ok) return { ok: false, phase: "stack", failure: selected.failure };

  clock.start("config");
  const configured = await configureStacks(request.stacks, project, stackContext);
  if (!configured.ok) return { ok: false, phase: "config", failure: configured.failure };
  await prepareShells(request.stacks, project, { context, replaces: !placed.inPlace });

  const info = { name: project.name, runtime: project.runtime };
  const { revision, contents } = placed;
  const root = await realpath(placed.root);
  await state.write({
    ...(await state.read()),
    ready: {
      preparation,
      revision,
      project: info,
      projectFolder: project.folder,
      root,
      // One source may contain several projects.
      ...(contents !== undefined && { contents: `${contents}//${relative(root, project.folder)}` }),
      ...(request.source.kind === "files" && { isProgram: true }),
      ...(backend !== undefined && { backend }),
      stacks: [...configured.value.stacks],
    },
  });
  return {
    ok: true,
    prepared: {
      preparation,
      revision,
      stack: request.stacks[0]?.name ?? "",
      project: info,
      pulumiVersion: usable.value.version,
      ...(usable.value.identity !== undefined && { cli: usable.value.identity }),
      ...(selected.value.warning !== undefined && { warning: selected.value.warning }),
      ...unchanged,
      changed: {
        source: placed.changed,
        dependencies: installed.value,
        stack: selected.value.changed,
        config: configured.value.changed,
      },
      timings: clock.end(),
    },
  };
}

async function comparison(
  source: Source,
  revision: string,
  context: StepContext,
): Promise<Pick<Prepared, "unchangedSince">> {
  if (source.kind !== "git" || !source.compareWith) return {};
  const since = await unchangedSince(source, revision, gitContext(context));
  const result = since === undefined ? "a selected file may have changed" : "no selected file has changed";
  context.log.info("commits compared", { from: source.compareWith.commit, to: revision, result });
  return since === undefined ? {} : { unchangedSince: since };
}

function unwrap<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === "rejected") throw settled.reason;
  return settled.value;
}

interface UsableCli {
  readonly version: string;
  readonly identity?: string | undefined;
}

async function usableCli({ knownClis = [] }: PrepareRequest, { cli }: StepContext): Promise<Outcome<UsableCli>> {
  await cli.adoptVersion(knownClis);
  const version = await cli.version();
  if (!version.ok) return version;
  const usable = checkVersion(version.value);
  return usable.ok ? done({ version: version.value.text, identity: await cli.identity() }) : usable;
}

interface PlacedProject {
  readonly placed: PlacedSource;
  readonly project: Project;
}

/** Links the working directory before the project is checked, so that it exists even if the project is invalid. */
async function placeProject(request: PrepareRequest, context: StepContext): Promise<Outcome<PlacedProject>> {
  const placed = await placeSource(request, context);
  if (!placed.ok) return placed;
  const { root, inPlace } = placed.value;
  const folder = await projectFolder(root, inPlace ? "." : sourceDir(request.source));
  if (!folder.ok) return folder;
  const project = await loadProject(folder.value, await realpath(root));
  const { options, log } = context;
  await linkWorkspace(options.paths.workspace, project.ok ? project.value.folder : folder.value, log);
  return project.ok ? done({ placed: placed.value, project: project.value }) : project;
}

async function placeSource(request: PrepareRequest, context: StepContext): Promise<Outcome<PlacedSource>> {
  const { options, state } = context;
  const key = sourceKey(request.source);
  const recorded = (await state.read()).source;
  // A checkout in the folder of an earlier agent version is replaced, even if its revision is current.
  const isInPlace = request.source.kind === "local" || recorded?.folder === options.paths.source;
  const known = isInPlace ? recorded : undefined;
  const unchanged = { changed: false, carried: [], inPlace: request.source.kind === "local" };
  if (known && key !== undefined && known.key === key && (await isDirectory(known.folder))) {
    return done({ root: known.folder, revision: known.revision, contents: known.contents, ...unchanged });
  }
  const obtained = await obtainSource(request.source, gitContext(context));
  if (!obtained.ok) return obtained;
  const { value } = obtained;
  if (value.kind === "folder") {
    await setSource(state, { ...(key !== undefined && { key }), revision: value.revision, folder: value.folder });
    return done({ root: value.folder, revision: value.revision, changed: true, carried: [], inPlace: true });
  }
  // The branch has not moved.
  if (known?.key === `revision:${value.revision}` && (await isDirectory(known.folder))) {
    return done({ root: known.folder, revision: known.revision, contents: known.contents, ...unchanged });
  }
  const { source: workspace } = options.paths;
  const dir = sourceDir(request.source);
  const beforeSwap = async (): Promise<void> => {
    await clearWorkspace(recorded, context);
    await setSource(state, undefined);
  };
  const checkedOut = await checkOut(value, { workspace, dir, beforeSwap });
  if (!checkedOut.ok) return checkedOut;
  await removeLeftovers(options.paths);
  const { carried } = checkedOut.value;
  const { revision, contents } = value;
  await setSource(state, { key: key ?? `revision:${revision}`, revision, folder: workspace, contents });
  context.log.info("source checked out", { kind: request.source.kind, revision });
  return done({ root: workspace, revision, contents, changed: true, carried, inPlace: false });
}

const gitContext = ({ options, inherited, cli, signal }: StepContext): GitContext => ({
  git: options.git,
  state: options.paths.state,
  policy: options,
  inherited,
  redactor: cli.redactor,
  signal,
});

/** Earlier agent versions checked out into the working directory. A folder of an init container is not the agent's. */
async function clearWorkspace(known: WorkspaceState["source"], { options, log }: StepContext): Promise<void> {
  const { paths } = options;
  const isCheckout = known?.folder === paths.workspace && !isLocal(known.revision);
  if (isCheckout) await moveOldCheckout(paths.workspace, log);
  await unlinkWorkspace(paths.workspace, log);
}

async function setSource(state: StateFile, source: WorkspaceState["source"]): Promise<void> {
  const { source: _, ...rest } = await state.read();
  await state.write(source ? { ...rest, source } : rest);
}

async function install(project: Project, placed: PlacedSource, context: StepContext): Promise<Outcome<boolean>> {
  const { state, cli, signal, log } = context;
  const key = await dependencyKey(project, await realpath(placed.root));
  const wanted = key === undefined ? "nothing" : `${project.folder}:${key}`;
  const { installed, ...rest } = await state.read();
  // A new checkout has only the dependencies that were carried over.
  const isInstalled = !placed.changed || placed.carried.length > 0 || !installsIntoCheckout(project);
  if (installed === wanted && isInstalled) return done(false);
  if (key === undefined) {
    await state.write({ ...rest, installed: wanted });
    return done(false);
  }
  if (placed.inPlace && !(await isWritableFolder(project.folder))) {
    log.info("using the dependencies of the image", { folder: project.folder });
    return done(false);
  }
  await state.write(rest);
  let end = await installDependencies({ project, cli, log, signal });
  if (!end.ok && placed.carried.length > 0 && end.failure.reason === "installFailed") {
    log.warn("incremental installation failed; installing from scratch");
    for (const path of placed.carried) await rm(join(placed.root, path), { recursive: true, force: true });
    end = await installDependencies({ project, cli, log, signal });
  }
  if (!end.ok) return end;
  await state.write({ ...rest, installed: wanted });
  return done(true);
}

interface SelectOptions {
  readonly state: StateFile;
  readonly stackContext: StackContext;
}

interface SelectedStacks {
  readonly warning?: string;
  readonly changed: boolean;
}

/** Selects one stack after the other and skips those that are already selected. */
async function selectStacks(
  stacks: readonly StackSettings[],
  project: Project,
  { state, stackContext }: SelectOptions,
): Promise<Outcome<SelectedStacks>> {
  const names = new Set(stacks.map(({ name }) => name));
  const { selected = [], ...rest } = await state.read();
  // Forget stacks that are no longer listed: they may have changed when they are listed again.
  let known = selected.filter(({ stack }) => names.has(stack));
  let changed = false;
  for (const stack of stacks) {
    const paths = stackPaths(project, stack, stackContext);
    if (!paths.ok) return paths;
    const { key } = paths.value;
    if (known.some((one) => one.stack === stack.name && one.key === key)) continue;
    known = known.filter((one) => one.stack !== stack.name);
    await state.write({ ...rest, selected: known });
    const end = await selectStack(project, stack, stackContext);
    if (!end.ok) return end;
    known = [...known, { stack: stack.name, key, ...end.value }];
    changed = true;
  }
  await state.write({ ...rest, selected: known });
  return done({ ...warningAbout(known, stacks.length > 1), changed });
}

function warningAbout(selected: readonly SelectedStack[], isOneOfSeveral: boolean): { readonly warning?: string } {
  const warnings = selected.flatMap(({ stack, warning }) => {
    if (warning === undefined) return [];
    return [isOneOfSeveral ? `${stack}: ${warning}` : warning];
  });
  return warnings.length === 0 ? {} : { warning: warnings.join("; ") };
}

interface ConfiguredStacks {
  readonly stacks: Ready["stacks"];
  readonly changed: boolean;
}

async function configureStacks(
  stacks: readonly StackSettings[],
  project: Project,
  context: StackContext,
): Promise<Outcome<ConfiguredStacks>> {
  const configured: Ready["stacks"] = [];
  let changed = false;
  for (const stack of stacks) {
    const paths = stackPaths(project, stack, context);
    if (!paths.ok) return paths;
    const end = await configureStack(project, stack, context);
    if (!end.ok) return stacks.length > 1 ? withStackName(stack, end.failure) : end;
    configured.push({ name: stack.name, settings: paths.value.settings });
    changed ||= end.value;
  }
  return done({ stacks: configured, changed });
}

/** Names the stack in a failure if there are several. */
function withStackName({ name }: StackSettings, { reason, message, lines }: Failure): Outcome<never> {
  return failed(reason, `the stack ${name} cannot be configured: ${message}`, lines);
}

interface ShellOptions {
  readonly context: StepContext;
  /** Whether the program's folder belongs to the agent. */
  readonly replaces: boolean;
}

/** Links the settings of every stack into the program's folder and selects the first stack. */
async function prepareShells(
  stacks: readonly StackSettings[],
  project: Project,
  { context, replaces }: ShellOptions,
): Promise<void> {
  const { options, cli, log } = context;
  const stackContext = { ...context, state: options.paths.state };
  // The first stack is last: if another stack has the same short name, the link points to the selected one's settings.
  for (const [index, stack] of [...stacks.entries()].toReversed()) {
    const paths = stackPaths(project, stack, stackContext);
    if (!paths.ok) continue;
    await publishSettings(project, stack, { ...paths.value, replaces });
    if (index > 0) continue;
    const { projectFile: agentProjectFile } = paths.value;
    const env = await cli.environment();
    await shareSelection({ env, project, agentProjectFile, workspace: options.paths.workspace, log });
  }
}

class PhaseClock {
  readonly #timings = { source: 0, install: 0, stack: 0, config: 0 };
  readonly #onPhase: (phase: PreparePhase) => void;
  #current: { readonly phase: PreparePhase; readonly since: number } | undefined;

  constructor(onPhase: (phase: PreparePhase) => void) {
    this.#onPhase = onPhase;
  }

  start(phase: PreparePhase): void {
    this.end();
    this.#current = { phase, since: performance.now() };
    this.#onPhase(phase);
  }

  end(): Prepared["timings"] {
    const current = this.#current;
    if (current) this.#timings[current.phase] += Math.round(performance.now() - current.since);
    this.#current = undefined;
    return this.#timings;
  }
}
