/**
 * Selecting or creating the stack, and giving it its settings. Both happen in a folder of the agent's own, with a
 * project file of the same name: the program's folder is not written to, so it may be read-only, and it stays what the
 * source says. The run is told where the settings are (`--config-file`).
 */
import { createHash } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import type { StackSettings } from "@pko/rpc";
import { stringify } from "yaml";
import { done, failed, type Outcome } from "../outcome.ts";
import { quoteName } from "../system/clean-text.ts";
import { hasCode, isInside, readIfThere, writeAtomically } from "../system/files.ts";
import { linkTarget, placeLink } from "../system/links.ts";
import type { PulumiCli } from "./cli.ts";
import { resolveConfig, secretText, type ResolvedItem } from "./config.ts";
import { explainEnd } from "./explain.ts";
import type { Project } from "./project.ts";
import { isProvider, providerInExport, providerOfKeys, providerWarning, type Provider } from "./secrets-provider.ts";
import type { SecretStore } from "./secrets.ts";
import { chooseKeys, readStackKeys, renderSettings, type StackKeys } from "./settings.ts";

export interface StackContext {
  readonly cli: PulumiCli;
  readonly secrets: SecretStore;
  /** A folder of the agent's own. */
  readonly state: string;
  readonly signal: AbortSignal;
}

interface StackPlace {
  readonly folder: string;
  /** The project file beside which the CLI selects the stack. */
  readonly projectFile: string;
  /** What a run gets as `--config-file`. */
  readonly settings: string;
  /** What was asked of the backend: the same again needs no asking. */
  readonly key: string;
}

/** `stack`, `org/stack` or `org/project/stack`; none of them can be taken for an option or a path. */
const stackName = /^(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\/){0,2}[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/;

export function placeOf(project: Project, stack: StackSettings, context: StackContext): Outcome<StackPlace> {
  if (!stackName.test(stack.name)) {
    return failed("configInvalid", `${quoteName(stack.name, 100)} is not the name of a stack`);
  }
  const folder = join(context.state, "stacks", digest([project.name, stack.name]).slice(0, 16));
  const key = digest([project.name, project.backendUrl, stack.name, stack.create, stack.secretsProvider]);
  const projectFile = join(folder, "project", "Pulumi.yaml");
  return done({ folder, projectFile, settings: join(folder, "settings.yaml"), key });
}

interface Selected {
  /** What the stack's owner should know of it. */
  readonly warning?: string;
}

/** One call of the CLI, which also makes the keys of a new stack. */
export async function selectStack(
  project: Project,
  stack: StackSettings,
  context: StackContext,
): Promise<Outcome<Selected>> {
  const place = placeOf(project, stack, context);
  if (!place.ok) return place;
  const folder = await projectCopy(project, place.value);
  const settingsFile = join(folder, `Pulumi.${shortName(stack.name)}.yaml`);
  const known = await knownKeys(project, stack, place.value);
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
  // What `stack init` made, if it made anything, is known from here on, unless somebody has changed it since.
  const made = readStackKeys(await readIfThere(settingsFile));
  const isOutdated = provider !== undefined && provider !== providerOfKeys(made);
  const keys = isOutdated ? {} : made;
  const after = renderSettings(undefined, { project: project.name, keys, settings: [], environments: [] });
  if (!after.ok) return after;
  await writeAtomically(place.value.settings, after.value);
  const actual = providerOfKeys(await knownKeys(project, stack, place.value)) ?? provider;
  if (!secretsProvider || actual === undefined || isProvider(actual, secretsProvider)) return done({});
  return done({ warning: providerWarning(actual, secretsProvider) });
}

/** Undefined where the stack has no state yet, or the CLI will not say: then there is nothing to warn of. */
async function providerInState(stack: string, folder: string, context: StackContext): Promise<Provider | undefined> {
  const { cli, signal } = context;
  const end = await cli.run({ args: ["stack", "export", "--stack", stack], cwd: folder, signal });
  return end.kind === "exited" && end.code === 0 ? providerInExport(end.stdout) : undefined;
}

/** It is missing because nobody may create it from here. */
function withRemedy(explained: Outcome<never>): Outcome<never> {
  if (explained.ok || explained.failure.reason !== "stackNotFound") return explained;
  const { message, lines } = explained.failure;
  return failed(
    "stackNotFound",
    `${message}; create it, or remove useLocalStackOnly (in a Workspace of your own, set create: true)`,
    lines,
  );
}

/** Writes the stack's settings; true when that changed them. */
export async function configureStack(
  project: Project,
  stack: StackSettings,
  context: StackContext,
): Promise<Outcome<boolean>> {
  const place = placeOf(project, stack, context);
  if (!place.ok) return place;
  const items = await resolveConfig(stack.config, project.name, await context.cli.environment());
  if (!items.ok) return items;
  context.cli.redactor.add(...items.value.filter(({ secret }) => secret).map(({ value }) => secretText(value)));
  const keys = await knownKeys(project, stack, place.value);
  const encrypted = await encryptItems(items.value, keys, { project, stack, context, place: place.value });
  if (!encrypted.ok) return encrypted;
  const base = await readRepositorySettings(project, stack, place.value);
  const text = renderSettings(base, {
    project: project.name,
    keys: encrypted.value.keys,
    settings: items.value.map((item) => ({ key: item.key, value: valueOf(item, encrypted.value.ciphertexts) })),
    environments: stack.environments,
  });
  if (!text.ok) return text;
  if (text.value === (await readIfThere(place.value.settings))) return done(false);
  await writeAtomically(place.value.settings, text.value);
  return done(true);
}

interface Encrypting {
  readonly project: Project;
  readonly stack: StackSettings;
  readonly context: StackContext;
  readonly place: StackPlace;
}

async function encryptItems(
  items: readonly ResolvedItem[],
  keys: StackKeys,
  { project, stack, context, place }: Encrypting,
): ReturnType<SecretStore["encrypt"]> {
  const values = items.filter(({ secret }) => secret).map(({ value }) => secretText(value));
  return await context.secrets.encrypt(values, keys, {
    cli: context.cli,
    folder: await projectCopy(project, place),
    project: project.name,
    stack: stack.name,
    signal: context.signal,
  });
}

function valueOf(item: ResolvedItem, ciphertexts: ReadonlyMap<string, string>) {
  if (!item.secret) return { kind: "plain" as const, value: item.value };
  return { kind: "secure" as const, ciphertext: ciphertexts.get(secretText(item.value)) ?? "" };
}

async function knownKeys(project: Project, stack: StackSettings, place: StackPlace): Promise<StackKeys> {
  const repository = readStackKeys(await readRepositorySettings(project, stack, place));
  return chooseKeys(repository, readStackKeys(await readIfThere(place.settings)));
}

/** The settings file that came with the source. */
function repositorySettings(project: Project, stack: StackSettings): string {
  return join(project.settingsFolder, `Pulumi.${shortName(stack.name)}${extname(project.file)}`);
}

/**
 * What the repository's own file says, also once a link has taken its place. Stacks of several organizations may have
 * equal short names and so share the file: the link may lead to the settings of another stack, which are not read.
 */
async function readRepositorySettings(
  project: Project,
  stack: StackSettings,
  place: StackPlace,
): Promise<string | undefined> {
  const path = repositorySettings(project, stack);
  const target = await linkTarget(path);
  const isPublished = target !== undefined && isInside(dirname(place.folder), target);
  return await readIfThere(isPublished ? replacedSettings(dirname(target)) : path);
}

const replacedSettings = (stackFolder: string): string => join(stackFolder, "repository.yaml");

/**
 * Puts a link to the stack's settings where a person's `pulumi config` looks for them. `replaces`: also in place of the
 * repository's own file, whose text is kept first; in a folder that is not the agent's, that file stays.
 */
export async function publishSettings(
  project: Project,
  stack: StackSettings,
  place: StackPlace & { readonly replaces: boolean },
): Promise<void> {
  const path = repositorySettings(project, stack);
  // The settings are YAML; the CLI would read them as JSON.
  if (extname(path) === ".json" || (await linkTarget(path)) === place.settings) return;
  const own = await readRepositorySettings(project, stack, place);
  if (own !== undefined && !place.replaces) return;
  try {
    if (own === undefined) await rm(replacedSettings(place.folder), { force: true });
    else await writeAtomically(replacedSettings(place.folder), own);
    await placeLink(path, place.settings);
  } catch (error) {
    // Of an image, perhaps.
    if (!hasCode(error, "EACCES", "EPERM", "EROFS", "ENOENT")) throw error;
  }
}

/** Enough of the project for the CLI to know which stack is meant. */
async function projectCopy(project: Project, place: StackPlace): Promise<string> {
  const folder = dirname(place.projectFile);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const backend = project.backendUrl === undefined ? {} : { backend: { url: project.backendUrl } };
  const content = stringify({ name: project.name, runtime: project.runtime, ...backend });
  await writeAtomically(place.projectFile, content);
  return folder;
}

function providerFlag(provider: string | undefined): string[] {
  return provider ? [`--secrets-provider=${provider}`] : [];
}

/** `org/project/stack` → `stack`. */
function shortName(name: string): string {
  return basename(name);
}

function digest(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
