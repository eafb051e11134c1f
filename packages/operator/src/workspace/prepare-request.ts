/** What the agent is asked to prepare: the Workspace's source and stacks in the agent's own words. Pure. */
import {
  workspaceFolder,
  type NormalWorkspace,
  type NormalWorkspaceStack,
  type Program,
  type WorkspaceSource,
} from "@pko/api";
import {
  assertNever,
  type ConfigItem,
  type GitAuth,
  type PrepareRequest,
  type Source,
  type StackSettings,
} from "@pko/rpc";
import { stringify } from "yaml";

import { lineOf } from "../sources/git-credentials.ts";
import { authorityKey, forgeHosts, knownHostsKey } from "../sources/server-trust.ts";
import { readingOf, type Readings } from "./references.ts";

type GitSource = Extract<WorkspaceSource, { kind: "git" }>;
type Auth = GitSource["auth"];
type SecretKey = NonNullable<Auth["token"]>;

/** What a request is made of, besides the spec. */
export interface Materials {
  /** The Secrets that `secretsOf` names. */
  readonly secrets: Readings;
  readonly program?: Program;
  /** The token of the GitHub App, where one is asked for. */
  readonly appToken?: AppToken;
  /** For artifacts of Flux. */
  readonly maxUnpackedBytes?: number;
}

export type AppToken = { readonly ok: true; readonly token: string } | { readonly ok: false; readonly message: string };

/** Turns a GitHub App's key into a token for one installation. Tokens live for an hour: it keeps them meanwhile. */
export interface GitHubAppTokens {
  tokenFor(app: GitHubApp, signal?: AbortSignal): Promise<AppToken>;
}

export interface GitHubApp {
  readonly appId: string;
  readonly installationId: string;
  readonly privateKey: string;
  /** Of the repository: an Enterprise server has its own API. */
  readonly repository: string;
  /** Certificates of the server's private authority, in PEM. */
  readonly ca?: string;
}

export type Requested =
  | { readonly ok: true; readonly request: PrepareRequest }
  /** It cannot be asked as things are. `soon`: what is missing may be on its way to us. */
  | { readonly ok: false; readonly message: string; readonly soon: boolean };

/** The Secrets that signing in takes. They are no part of the pod: a new token does not replace it. */
export function secretsOf({ source }: NormalWorkspace): string[] {
  if (source.kind !== "git") return [];
  const { githubApp, ...keys } = source.auth;
  const all = [...Object.values(keys), ...Object.values(githubApp ?? {})];
  return [...new Set(all.map(({ name = "" }) => name).filter((name) => name !== ""))];
}

export function buildPrepareRequest(workspace: NormalWorkspace, materials: Materials): Requested {
  const source = sourceOf(workspace.source, materials);
  if (!source.ok) return source;
  return { ok: true, request: { source: source.value, stacks: workspace.stacks.map(settingsOf) } };
}

type Refused = Extract<Requested, { ok: false }>;
type Attempt<T> = { readonly ok: true; readonly value: T } | Refused;

const refused = (message: string): Refused => ({ ok: false, message, soon: false });
const given = <T>(value: T): Attempt<T> => ({ ok: true, value });

function sourceOf(source: WorkspaceSource, materials: Materials): Attempt<Source> {
  switch (source.kind) {
    case "git":
      return gitOf(source, materials);
    case "flux":
      return given(fluxOf(source, materials));
    case "local":
      return given({ kind: "local", dir: source.dir });
    case "program":
      return programOf(source, materials);
    case "projectInfo":
      return given({ kind: "project", name: source.name, runtime: source.runtime });
    case "none":
      // An init container has put it there.
      return given({ kind: "local", dir: workspaceFolder });
    default:
      return assertNever(source);
  }
}

function fluxOf(
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

function gitOf(source: GitSource, materials: Materials): Attempt<Source> {
  const { repository, ref, dir, shallow } = source;
  const auth = authOf(source, materials);
  if (!auth.ok) return auth;
  const authority = authorityOf(source, materials);
  if (!authority.ok) return authority;
  return given({
    kind: "git",
    url: repository.url,
    ...(commitPattern.test(ref) ? { commit: ref } : { ref }),
    shallow,
    ...(dir && { dir }),
    ...(auth.value && { auth: auth.value }),
    ...authority.value,
  });
}

/** The server's CA: the one that `ca` names, otherwise the one in the Secret of the credentials. */
function authorityOf({ auth }: GitSource, materials: Materials): Attempt<{ readonly ca?: string }> {
  const { sshPrivateKey, token, githubApp, password, ca } = auth;
  if (sshPrivateKey) return given({});
  if (ca) return mapped(valueOf(ca, materials), (pem) => ({ ca: pem }));
  const place = token ?? githubApp?.privateKey ?? password;
  const beside = place && secretNamed(place.name ?? "", materials)?.[authorityKey];
  return given(beside ? { ca: beside } : {});
}

/** In the reference's order: an ssh key, a token, a GitHub App, a user's name and password. */
function authOf({ auth }: GitSource, materials: Materials): Attempt<GitAuth | undefined> {
  const { sshPrivateKey, token, githubApp, username, password } = auth;
  if (sshPrivateKey) return sshOf(sshPrivateKey, password, materials);
  if (token) return mapped(valueOf(token, materials), (value) => ({ kind: "token", token: value.trim() }));
  if (githubApp) {
    const { appToken } = materials;
    if (!appToken) return refused("spec.git.auth.githubApp: this operator has no way to sign in as a GitHub App");
    // GitHub takes an installation's token as the password of this user.
    return appToken.ok
      ? given({ kind: "basic", username: "x-access-token", password: appToken.token })
      : refused(`spec.git.auth.githubApp: ${appToken.message}`);
  }
  if (!username && !password) return given(undefined);
  if (!username || !password) return refused("spec.git.auth: username and password go together; give both");
  return mapped(valueOf(username, materials), (name) =>
    mapped(valueOf(password, materials), (secret) => ({
      kind: "basic",
      username: lineOf(name),
      password: lineOf(secret),
    })),
  );
}

function sshOf(key: SecretKey, password: SecretKey | undefined, materials: Materials): Attempt<GitAuth> {
  const privateKey = valueOf(key, materials);
  if (!privateKey.ok) return privateKey;
  const passphrase = password ? valueOf(password, materials) : undefined;
  if (passphrase && !passphrase.ok) return passphrase;
  // Without lines of its own it can only be one of the well-known hosts: nobody is trusted for being the first to answer.
  const knownHosts = secretNamed(key.name ?? "", materials)?.[knownHostsKey] ?? forgeHosts;
  return given({
    kind: "ssh",
    privateKey: privateKey.value,
    ...(passphrase && { passphrase: passphrase.value }),
    knownHosts,
  });
}

function mapped<T, U>(attempt: Attempt<T>, change: (value: T) => U | Attempt<U>): Attempt<U> {
  if (!attempt.ok) return attempt;
  const changed = change(attempt.value);
  return isAttempt(changed) ? changed : given(changed);
}

function isAttempt<T>(value: T | Attempt<T>): value is Attempt<T> {
  return typeof value === "object" && value !== null && "ok" in value;
}

const secretNamed = (name: string, { secrets }: Materials): Readonly<Record<string, string>> | undefined =>
  readingOf(secrets, { kind: "Secret", name })?.found?.data;

function valueOf({ name = "", key }: SecretKey, materials: Materials): Attempt<string> {
  const data = secretNamed(name, materials);
  if (!data) return refused(`Secret "${name}", which signs in to the repository, does not exist`);
  const value = Object.hasOwn(data, key) ? data[key] : undefined;
  return value ? given(value) : refused(`Secret "${name}", which signs in to the repository, has no key ${key}`);
}

/** What a resolver of GitHub Apps needs; undefined where the Workspace names none. */
export function githubAppOf({ source }: NormalWorkspace, secrets: Readings): Attempt<GitHubApp> | undefined {
  if (source.kind !== "git" || !source.auth.githubApp || source.auth.sshPrivateKey || source.auth.token)
    return undefined;
  const { appID, installationID, privateKey } = source.auth.githubApp;
  const repository = source.repository.url;
  const authority = authorityOf(source, { secrets });
  if (!authority.ok) return authority;
  return mapped(valueOf(appID, { secrets }), (appId) =>
    mapped(valueOf(installationID, { secrets }), (installationId) =>
      mapped(valueOf(privateKey, { secrets }), (pem) => ({
        appId: appId.trim(),
        installationId: installationId.trim(),
        privateKey: pem,
        repository,
        ...authority.value,
      })),
    ),
  );
}

type ProgramSource = Extract<WorkspaceSource, { kind: "program" }>;

/**
 * A later generation than the one that is meant serves too: the earlier one is gone, and an Update that waits for it
 * would wait for ever.
 */
function programOf({ name, generation }: ProgramSource, { program }: Materials): Attempt<Source> {
  if (!program) return { ok: false, message: `Program "${name}" does not exist`, soon: true };
  const present = program.metadata.generation ?? 0;
  if (present < generation) {
    return { ok: false, message: `Program "${name}" is awaited at generation ${generation}`, soon: true };
  }
  return given({ kind: "files", files: { "Pulumi.yaml": projectYaml(program) }, revision: String(present) });
}

export function projectYaml({ metadata, program = {} }: Program): string {
  const { name, ...rest } = program;
  return stringify({ name: name || metadata.name, runtime: "yaml", ...rest });
}

function settingsOf(stack: NormalWorkspaceStack): StackSettings {
  const { name, create, secretsProvider, environments } = stack;
  return {
    name,
    create,
    ...(secretsProvider && { secretsProvider }),
    config: stack.config.map(configOf),
    environments: [...environments],
  };
}

function configOf({ key, isPath, secret, from }: NormalWorkspaceStack["config"][number]): ConfigItem {
  return { key, value: configValueOf(from), ...(secret && { secret }), ...(isPath && { path: true }) };
}

function configValueOf(from: NormalWorkspaceStack["config"][number]["from"]): ConfigItem["value"] {
  switch (from.kind) {
    case "value":
      return { from: "value", value: from.value };
    case "env":
      return { from: "env", name: from.name, ...(from.json && { json: true }) };
    case "file":
      return { from: "file", path: from.path, ...(from.json && { json: true }) };
    default:
      return assertNever(from);
  }
}
