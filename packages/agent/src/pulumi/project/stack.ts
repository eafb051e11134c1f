/**
 * Selects or creates the stack, and writes its settings. Both use a folder of the agent with a copy of the project file:
 * the program's folder is not written to, so it may be read-only and keeps the source's content. Runs get the settings
 * with `--config-file`.
 */
import { mkdir, rm } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import type { StackSettings } from "@pko/rpc";
import { stringify } from "yaml";
import { done, failed, type Outcome } from "../../outcome.ts";
import { quoteName } from "../../system/clean-text.ts";
import { jsonDigest } from "../../system/digest.ts";
import { hasCode, isInside, readIfExists, writeAtomically } from "../../system/files.ts";
import { linkTarget, placeLink } from "../../system/links.ts";
import type { PulumiCli } from "../cli.ts";
import { resolveConfig, secretText, type ResolvedItem } from "./config.ts";
import { explainEnd } from "../explain.ts";
import type { Project } from "./project.ts";
import { isProvider, providerInExport, providerOfKeys, providerWarning, type Provider } from "./secrets-provider.ts";
import type { SecretStore } from "./secrets.ts";
import { chooseKeys, readStackKeys, renderSettings, type StackKeys } from "./settings.ts";

export interface StackContext {
  readonly cli: PulumiCli;
  readonly secrets: SecretStore;
  /** The agent's folder. */
  readonly state: string;
  readonly signal: AbortSignal;
}

interface StackPaths {
  readonly folder: string;
  /** The copy of the project file that the CLI uses to select the stack. */
  readonly projectFile: string;
  /** A run's `--config-file`. */
  readonly settings: string;
  /** Identifies the selection: with the same key, the stack need not be selected again. */
  readonly key: string;
}

/** `stack`, `org/stack` or `org/project/stack`; the CLI cannot take it for an option or a path. */
const stackName = /^(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\/){0,2}[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/;

export function stackPaths(project: Project, stack: StackSettings, context: StackContext): Outcome<StackPaths> {
  if (!stackName.test(stack.name)) {
    return failed(
      "configInvalid",
      `${quoteName(stack.name, 100)} is not a valid stack name; use stack, organization/stack or organization/project/stack`,
    );
  }
  const folder = join(context.state, "stacks", jsonDigest([project.name, stack.name]).slice(0, 16));
  const key = jsonDigest([project.name, project.backendUrl, stack.name, stack.create, stack.secretsProvider]);
  const projectFile = join(folder, "project", "Pulumi.yaml");
  return done({ folder, projectFile, settings: join(folder, "settings.yaml"), key });
}

interface Selected {
  /** For the stack's owner. */
  readonly warning?: string;
}

/** One CLI command, which also creates the keys of a new stack. */
export async function selectStack(
  project: Project,
  stack: StackSettings,
  context: StackContext,
): Promise<Outcome<Selected>> {
  const paths = stackPaths(project, stack, context);
  if (!paths.ok) return paths;
  const folder = await projectCopy(project, paths.value);
  const settingsFile = join(folder, `Pulumi.${shortName(stack.name)}.yaml`);
  const known = await knownKeys(project, stack, paths.value);
  const before = renderSettings(undefined, { project: project.name, keys: known, settings: [], environments: [] });
  if (!before.ok) return before;
  await writeAtomically(settingsFile, before.value);
  const create = stack.create ? ["--create", ...providerFlag(stack.secretsProvider)] : [];
  const end = await context.cli.run({
    args: ["stack", "select", "--stack", stack.name, ...create],
    cwd: folder,
    signal: context.signal,
  });
  if (end.kind !== "exited" || end.code !== 0) {
    const explained = explainEnd(end, `the stack ${stack.name} cannot be selected`, context.cli.redactor);
    return stack.create ? explained : withRemedy(explained);
  }
  const { secretsProvider } = stack;
  const isNew = end.stdout.includes("Created stack");
  const provider = secretsProvider && !isNew ? await providerInState(stack.name, folder, context) : undefined;
  // Keep the keys that `stack init` created, unless the stack's provider was changed since.
  const created = readStackKeys(await readIfExists(settingsFile));
  const isOutdated = provider !== undefined && provider !== providerOfKeys(created);
  const keys = isOutdated ? {} : created;
  const after = renderSettings(undefined, { project: project.name, keys, settings: [], environments: [] });
  if (!after.ok) return after;
  await writeAtomically(paths.value.settings, after.value);
  const actual = providerOfKeys(await knownKeys(project, stack, paths.value)) ?? provider;
  if (!secretsProvider || actual === undefined || isProvider(actual, secretsProvider)) return done({});
  return done({ warning: providerWarning(actual, secretsProvider) });
}

/** Undefined if the stack has no state yet or the CLI fails: then there is nothing to warn about. */
async function providerInState(stack: string, folder: string, context: StackContext): Promise<Provider | undefined> {
  const { cli, signal } = context;
  const end = await cli.run({ args: ["stack", "export", "--stack", stack], cwd: folder, signal });
  return end.kind === "exited" && end.code === 0 ? providerInExport(end.stdout) : undefined;
}

/** The stack is missing, and the spec does not allow the agent to create it. */
function withRemedy(explained: Outcome<never>): Outcome<never> {
  if (explained.ok || explained.failure.reason !== "stackNotFound") return explained;
  const { message, lines } = explained.failure;
  return failed(
    "stackNotFound",
    `${message}; create it, or remove useLocalStackOnly (in a Workspace of your own, set create: true)`,
    lines,
  );
}

/** Writes the stack's settings; true if they changed. */
export async function configureStack(
  project: Project,
  stack: StackSettings,
  context: StackContext,
): Promise<Outcome<boolean>> {
  const paths = stackPaths(project, stack, context);
  if (!paths.ok) return paths;
  const items = await resolveConfig(stack.config, project.name, await context.cli.environment());
  if (!items.ok) return items;
  context.cli.redactor.add(...items.value.filter(({ secret }) => secret).map(({ value }) => secretText(value)));
  const keys = await knownKeys(project, stack, paths.value);
  const encrypted = await encryptItems(items.value, keys, { project, stack, context, paths: paths.value });
  if (!encrypted.ok) return encrypted;
  const base = await readRepositorySettings(project, stack, paths.value);
  const text = renderSettings(base, {
    project: project.name,
    keys: encrypted.value.keys,
    settings: items.value.map((item) => ({ key: item.key, value: settingValue(item, encrypted.value.ciphertexts) })),
    environments: stack.environments,
  });
  if (!text.ok) return text;
  if (text.value === (await readIfExists(paths.value.settings))) return done(false);
  await writeAtomically(paths.value.settings, text.value);
  return done(true);
}

interface Encrypting {
  readonly project: Project;
  readonly stack: StackSettings;
  readonly context: StackContext;
  readonly paths: StackPaths;
}

async function encryptItems(
  items: readonly ResolvedItem[],
  keys: StackKeys,
  { project, stack, context, paths }: Encrypting,
): ReturnType<SecretStore["encrypt"]> {
  const values = items.filter(({ secret }) => secret).map(({ value }) => secretText(value));
  return await context.secrets.encrypt(values, keys, {
    cli: context.cli,
    folder: await projectCopy(project, paths),
    project: project.name,
    stack: stack.name,
    signal: context.signal,
  });
}

function settingValue(item: ResolvedItem, ciphertexts: ReadonlyMap<string, string>) {
  if (!item.secret) return { kind: "plain" as const, value: item.value };
  return { kind: "secure" as const, ciphertext: ciphertexts.get(secretText(item.value)) ?? "" };
}

async function knownKeys(project: Project, stack: StackSettings, paths: StackPaths): Promise<StackKeys> {
  const repository = readStackKeys(await readRepositorySettings(project, stack, paths));
  return chooseKeys(repository, readStackKeys(await readIfExists(paths.settings)));
}

/** The settings file in the source. */
function repositorySettings(project: Project, stack: StackSettings): string {
  return join(project.settingsFolder, `Pulumi.${shortName(stack.name)}${extname(project.file)}`);
}

/**
 * The content of the repository's settings file, even after a link replaced it. Stacks of several organizations may have
 * the same short name and therefore share the file: the link may point to the settings of another stack.
 */
async function readRepositorySettings(
  project: Project,
  stack: StackSettings,
  paths: StackPaths,
): Promise<string | undefined> {
  const path = repositorySettings(project, stack);
  const target = await linkTarget(path);
  const isPublished = target !== undefined && isInside(dirname(paths.folder), target);
  return await readIfExists(isPublished ? replacedSettings(dirname(target)) : path);
}

const replacedSettings = (stackFolder: string): string => join(stackFolder, "repository.yaml");

/**
 * Links the stack's settings to where `pulumi config` in a shell expects them. With `replaces` the link also replaces the
 * repository's file, whose text is saved first; in a folder that is not the agent's, that file stays.
 */
export async function publishSettings(
  project: Project,
  stack: StackSettings,
  paths: StackPaths & { readonly replaces: boolean },
): Promise<void> {
  const path = repositorySettings(project, stack);
  // The settings are YAML, but the CLI would parse a .json file as JSON.
  if (extname(path) === ".json" || (await linkTarget(path)) === paths.settings) return;
  const own = await readRepositorySettings(project, stack, paths);
  if (own !== undefined && !paths.replaces) return;
  try {
    if (own === undefined) await rm(replacedSettings(paths.folder), { force: true });
    else await writeAtomically(replacedSettings(paths.folder), own);
    await placeLink(path, paths.settings);
  } catch (error) {
    // The folder may be a read-only part of the image.
    if (!hasCode(error, "EACCES", "EPERM", "EROFS", "ENOENT")) throw error;
  }
}

/** Writes the parts of the project file that the CLI needs to identify the stack. */
async function projectCopy(project: Project, paths: StackPaths): Promise<string> {
  const folder = dirname(paths.projectFile);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const backend = project.backendUrl === undefined ? {} : { backend: { url: project.backendUrl } };
  const content = stringify({ name: project.name, runtime: project.runtime, ...backend });
  await writeAtomically(paths.projectFile, content);
  return folder;
}

function providerFlag(provider: string | undefined): string[] {
  return provider ? [`--secrets-provider=${provider}`] : [];
}

/** `org/project/stack` → `stack`. */
function shortName(name: string): string {
  return basename(name);
}
