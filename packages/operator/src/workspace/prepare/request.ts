/** The request to the agent: the Workspace's source and stacks, in the types of the protocol. Pure. */
import {
  workspaceFolder,
  type NormalWorkspace,
  type NormalWorkspaceStack,
  type Program,
  type WorkspaceSource,
} from "@pko/api";
import type { ConfigItem, GitAuth, PrepareRequest, Source, StackSettings } from "@pko/rpc";
import { stringify } from "yaml";

import { resolveCredentials, secretNames, type GitCredentials } from "../../sources/git-credentials.ts";
import { appCredentials, type AppToken, type GitHubApp } from "../../sources/github-app.ts";
import { readingOf, type Readings } from "../pod/references.ts";

/** What the request is built from, in addition to the spec. */
export interface Materials {
  /** They include the Secrets that `credentialSecrets` names. */
  readonly secrets: Readings;
  readonly program?: Program;
  /** The token of the GitHub App, once it was requested. */
  readonly appToken?: AppToken;
  /** For artifacts of Flux. */
  readonly maxUnpackedBytes?: number;
  /** For the agent's log. */
  readonly origin?: NonNullable<PrepareRequest["origin"]>;
}

export type Requested =
  | { readonly kind: "complete"; readonly request: PrepareRequest }
  /** `soon`: the missing object may exist soon. */
  | { readonly kind: "incomplete"; readonly message: string; readonly soon: boolean }
  /** The request can be built with a token of this GitHub App. */
  | { readonly kind: "needsAppToken"; readonly app: GitHubApp };

export const noAppTokens: AppToken = { ok: false, message: "this operator cannot sign in as a GitHub App" };

/** The Secrets with credentials of the repository. They are not part of the pod: a new token does not replace it. */
export const credentialSecrets = ({ source }: NormalWorkspace): string[] =>
  source.kind === "git" ? secretNames(source.auth) : [];

export function buildPrepareRequest(workspace: NormalWorkspace, materials: Materials): Requested {
  const source = buildSource(workspace.source, materials);
  if (!isSource(source)) return source;
  const { origin } = materials;
  const stacks = workspace.stacks.map(stackSettings);
  return { kind: "complete", request: { source, stacks, ...(origin && { origin }) } };
}

type Unavailable = Exclude<Requested, { kind: "complete" }>;

const isSource = (source: Source | Unavailable): source is Source =>
  source.kind !== "incomplete" && source.kind !== "needsAppToken";

const incomplete = (message: string, soon = false): Unavailable => ({ kind: "incomplete", message, soon });

function buildSource(source: WorkspaceSource, materials: Materials): Source | Unavailable {
  switch (source.kind) {
    case "git":
      return gitSource(source, materials);
    case "flux":
      return fluxSource(source, materials);
    case "local":
      return { kind: "local", dir: source.dir };
    case "program":
      return programSource(source, materials);
    case "projectInfo":
      return { kind: "project", name: source.name, runtime: source.runtime };
    case "none":
      // An init container provides the program.
      return { kind: "local", dir: workspaceFolder };
  }
}

function fluxSource(
  { url, digest, dir }: Extract<WorkspaceSource, { kind: "flux" }>,
  { maxUnpackedBytes }: Materials,
): Source {
  return {
    kind: "flux",
    url,
    digest,
    ...(dir && { dir }),
    ...(maxUnpackedBytes !== undefined && { maxUnpackedBytes }),
  };
}

const commitPattern = /^([0-9a-f]{40}|[0-9a-f]{64})$/;

function gitSource(source: Extract<WorkspaceSource, { kind: "git" }>, materials: Materials): Source | Unavailable {
  const { repository, ref, dir, shallow, compareWith } = source;
  const { url } = repository;
  const { secrets, appToken } = materials;
  const access = resolveCredentials(source.auth, (name) => readingOf(secrets, { kind: "Secret", name })?.found?.data);
  if (access.kind === "missing") return incomplete(access.message);
  const ca = access.ca !== undefined && { ca: access.ca };
  if (access.credentials.kind === "githubApp" && !appToken) {
    const { appId, installationId, privateKey } = access.credentials;
    return { kind: "needsAppToken", app: { appId, installationId, privateKey, repository: url, ...ca } };
  }
  const auth = agentAuth(access.credentials, appToken ?? noAppTokens);
  if (typeof auth === "string") return incomplete(auth);
  return {
    kind: "git",
    url,
    ...(commitPattern.test(ref) ? { commit: ref } : { ref }),
    shallow,
    ...(dir && { dir }),
    ...(auth && { auth }),
    ...ca,
    ...(compareWith && { compareWith: { commit: compareWith.commit, pathFilters: compareWith.pathFilters ?? [] } }),
  };
}

/** A string is a problem. */
function agentAuth(credentials: GitCredentials, appToken: AppToken): GitAuth | string | undefined {
  switch (credentials.kind) {
    case "none":
      return undefined;
    case "token":
    case "basic":
    case "ssh":
      return credentials;
    case "githubApp":
      return appToken.ok ? appCredentials(appToken.token) : `spec.git.auth.githubApp: ${appToken.message}`;
  }
}

/**
 * A later generation than the requested one serves as well: the earlier one no longer exists, and an Update that waits for it
 * would wait forever.
 */
function programSource(
  { name, generation }: Extract<WorkspaceSource, { kind: "program" }>,
  { program }: Materials,
): Source | Unavailable {
  if (!program) return incomplete(`there is no Program ${name}`, true);
  const present = program.metadata.generation ?? 0;
  if (present < generation) return incomplete(`Program ${name} has not reached generation ${generation} yet`, true);
  return { kind: "files", files: { "Pulumi.yaml": projectYaml(program) }, revision: String(present) };
}

/** Every pass builds the request, and rendering is half of that. A Program in the store is replaced, never changed. */
const rendered = new WeakMap<Program, string>();

export function projectYaml(program: Program): string {
  const known = rendered.get(program);
  if (known !== undefined) return known;
  const { name, ...rest } = program.program ?? {};
  const text = stringify({ name: name || program.metadata.name, runtime: "yaml", ...rest });
  rendered.set(program, text);
  return text;
}

function stackSettings(stack: NormalWorkspaceStack): StackSettings {
  const { name, create, secretsProvider, environments } = stack;
  return {
    name,
    create,
    ...(secretsProvider && { secretsProvider }),
    config: stack.config.map(configItem),
    environments: [...environments],
  };
}

function configItem({ key, isPath, secret, from }: NormalWorkspaceStack["config"][number]): ConfigItem {
  return { key, value: configValue(from), ...(secret && { secret }), ...(isPath && { path: true }) };
}

function configValue(from: NormalWorkspaceStack["config"][number]["from"]): ConfigItem["value"] {
  switch (from.kind) {
    case "value":
      return { from: "value", value: from.value };
    case "env":
      return { from: "env", name: from.name, ...(from.json && { json: true }) };
    case "file":
      return { from: "file", path: from.path, ...(from.json && { json: true }) };
  }
}
