/**
 * The world git runs in: no configuration but ours, no hooks, no helpers, no prompt, two protocols. Credentials live in
 * this environment and in files of mode 0600, never in arguments or in a URL.
 */
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { GitSource } from "@pko/rpc";
import {
  gitEnvironment,
  gitSettings,
  settingVariables,
  type GitConfigLine,
  type GitSurroundings,
  type NetworkPolicy,
} from "@pko/git";
import { resolveHost } from "../net/addresses.ts";
import { done, failed, type Outcome } from "../outcome.ts";
import type { Remote } from "./git-url.ts";

export interface GitEnvironment {
  /** What git is given as the repository. */
  readonly remote: string;
  readonly env: Readonly<Record<string, string>>;
  readonly authorization?: string;
  /** Removes the files that hold credentials. */
  dispose(): Promise<void>;
}

export interface GitAccess {
  readonly remote: Remote;
  readonly auth: GitSource["auth"];
  readonly ca: string | undefined;
}

export async function prepareGit(access: GitAccess, setting: GitSurroundings): Promise<Outcome<GitEnvironment>> {
  const { remote } = access;
  const host = remote.kind === "http" ? remote.url.hostname : remote.host;
  const addresses = await resolveHost(host, setting.policy);
  if (!addresses.ok) {
    // Behind a proxy a name may be one that only the proxy can resolve.
    const isForProxy = remote.kind === "http" && hasProxy(setting.inherited);
    if (!isForProxy || addresses.failure.reason !== "sourceUnavailable") return addresses;
  }
  await mkdir(setting.home, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(setting.home, "git-"));
  const dispose = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const pinned = addresses.ok ? addresses.value : [];
  const built =
    remote.kind === "http"
      ? await httpEnvironment(remote, access, { folder, pinned })
      : await sshEnvironment(remote, access, { folder, pinned });
  if (!built.ok) {
    await dispose();
    return built;
  }
  const { config, env, authorization } = built.value;
  return done({
    remote: remote.kind === "http" ? remote.url.href : remote.spelled,
    env: {
      ...baseEnvironment(setting),
      ...env,
      ...settingVariables([...baseConfig(setting.policy), ...config]),
    },
    ...(authorization && { authorization }),
    dispose,
  });
}

/** For commands that only read and write on this machine. */
export function localGitEnvironment(setting: GitSurroundings): Record<string, string> {
  return { ...baseEnvironment(setting), ...settingVariables(baseConfig(setting.policy)) };
}

interface Built {
  readonly config: readonly GitConfigLine[];
  readonly env: Readonly<Record<string, string>>;
  readonly authorization?: string;
}

interface Place {
  readonly folder: string;
  readonly pinned: readonly string[];
}

function baseEnvironment(setting: GitSurroundings): Record<string, string> {
  return { ...gitEnvironment(setting), GIT_OPTIONAL_LOCKS: "0" };
}

function baseConfig(policy: NetworkPolicy): GitConfigLine[] {
  return [
    ...gitSettings(policy),
    ["core.fsmonitor", "false"],
    ["http.lowSpeedTime", "60"],
    ["submodule.recurse", "false"],
    ["fetch.recurseSubmodules", "false"],
    ["gc.auto", "0"],
    ["maintenance.auto", "false"],
    ["advice.detachedHead", "false"],
  ];
}

type HttpRemote = Extract<Remote, { kind: "http" }>;
type SshRemote = Extract<Remote, { kind: "ssh" }>;

async function httpEnvironment(remote: HttpRemote, access: GitAccess, place: Place): Promise<Outcome<Built>> {
  if (access.auth?.kind === "ssh") return failed("sourceInvalid", "an ssh key cannot open an https repository");
  const { url } = remote;
  const authorization = authorizationOf(remote, access.auth);
  const config: GitConfigLine[] = [];
  if (authorization) {
    if (/[\r\n]/.test(authorization)) return failed("sourceInvalid", "the git credentials hold a line break");
    // For this origin alone.
    config.push([`http.${url.origin}/.extraHeader`, `Authorization: ${authorization}`]);
  }
  if (place.pinned.length > 0 && url.hostname !== place.pinned[0] && !url.hostname.startsWith("[")) {
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    config.push(["http.curloptResolve", `${url.hostname}:${port}:${place.pinned.map(bracketed).join(",")}`]);
  }
  const env: Record<string, string> = {};
  if (access.ca) {
    env["GIT_SSL_CAINFO"] = join(place.folder, "ca.pem");
    await writeFile(env["GIT_SSL_CAINFO"], access.ca, { mode: 0o600 });
  }
  return done({ config, env, ...(authorization && { authorization }) });
}

function authorizationOf(remote: HttpRemote, auth: GitSource["auth"]): string | undefined {
  const basic = (user: string, password: string): string =>
    `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  // The forges take a token as the password of any user.
  if (auth?.kind === "token") return basic("git", auth.token);
  if (auth?.kind === "basic") return basic(auth.username, auth.password);
  return remote.username || remote.password ? basic(remote.username, remote.password) : undefined;
}

async function sshEnvironment(remote: SshRemote, access: GitAccess, place: Place): Promise<Outcome<Built>> {
  const { auth } = access;
  if (auth?.kind !== "ssh") return failed("sourceInvalid", "an ssh repository needs an ssh key");
  if (auth.knownHosts.trim() === "") {
    return failed("sourceInvalid", "an ssh repository needs known_hosts: a host that is not known is not trusted");
  }
  const file = async (name: string, text: string, mode: number): Promise<string> => {
    const path = join(place.folder, name);
    await writeFile(path, text, { mode });
    await chmod(path, mode);
    return path;
  };
  const key = await file("key", `${auth.privateKey.trimEnd()}\n`, 0o600);
  const known = await file("known_hosts", `${auth.knownHosts.trimEnd()}\n`, 0o600);
  const env: Record<string, string> = {
    GIT_SSH_VARIANT: "ssh",
    GIT_SSH_COMMAND: sshCommand({ key, known, remote, address: place.pinned[0] ?? remote.host }),
  };
  if (auth.passphrase !== undefined) {
    env["AGENT_SSH_PASSPHRASE"] = auth.passphrase;
    env["SSH_ASKPASS"] = await file("askpass", `#!/bin/sh\nprintf '%s\\n' "$AGENT_SSH_PASSPHRASE"\n`, 0o700);
    env["SSH_ASKPASS_REQUIRE"] = "force";
  }
  return done({ config: [], env });
}

interface SshCommand {
  readonly key: string;
  readonly known: string;
  readonly remote: SshRemote;
  readonly address: string;
}

/** The address that was looked at is the one dialled; the host's key is looked up under the host's name. */
function sshCommand({ key, known, remote, address }: SshCommand): string {
  const name = remote.host.replaceAll(/[[\]]/g, "");
  const options = [
    `IdentityFile=${key}`,
    "IdentitiesOnly=yes",
    "IdentityAgent=none",
    `UserKnownHostsFile=${known}`,
    "GlobalKnownHostsFile=/dev/null",
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "VerifyHostKeyDNS=no",
    `HostKeyAlias=${remote.port === 22 ? name : `[${name}]:${remote.port}`}`,
    `HostName=${address}`,
    "PasswordAuthentication=no",
    "KbdInteractiveAuthentication=no",
    "ForwardAgent=no",
    "PermitLocalCommand=no",
    "ProxyCommand=none",
    "ConnectTimeout=20",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
  ];
  return ["ssh", "-F", "/dev/null", ...options.flatMap((option) => ["-o", `'${option}'`])].join(" ");
}

function bracketed(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

function hasProxy(env: NodeJS.ProcessEnv): boolean {
  return ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"].some((name) => env[name]);
}
