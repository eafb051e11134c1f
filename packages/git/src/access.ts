/**
 * What git needs to access a repository: a checked address, and credentials, which are passed in variables and in files
 * of mode 0600, never in arguments or in a URL.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { hasProxy, resolveHost, type NetworkPolicy } from "./addresses.ts";
import {
  gitEnvironment,
  gitSettings,
  settingVariables,
  type GitConfigLine,
  type GitProcessContext,
} from "./environment.ts";
import { parseRemote, type Remote } from "./remote.ts";
import { sshCommand } from "./ssh.ts";
import { hasCaVariables, trustedCaCertificates } from "./trust.ts";

export type RepositoryCredentials =
  | { readonly kind: "none" }
  | { readonly kind: "basic"; readonly username: string; readonly password: string }
  | {
      readonly kind: "ssh";
      readonly privateKey: string;
      readonly passphrase?: string;
      /** Lines of a known_hosts file. There is no trust on first use: a host without a match is rejected. */
      readonly knownHosts: string;
    };

interface Repository {
  readonly url: string;
  readonly credentials: RepositoryCredentials;
  /** Certificates of the server's private CA, in PEM. */
  readonly ca?: string;
}

interface OpenOptions {
  readonly context: GitProcessContext;
  /** Additional settings for the command. */
  readonly settings: readonly GitConfigLine[];
}

export interface OpenRepository {
  readonly kind: "open";
  /** The repository's URL for git, without credentials. */
  readonly remote: string;
  /** Git's complete environment. */
  readonly env: Readonly<Record<string, string>>;
  /** The Authorization header for https. */
  readonly authorization?: string;
  /** Must not appear in logs. */
  readonly secrets: readonly string[];
  /** Deletes the files with the credentials. */
  dispose(): Promise<void>;
}

export type Unopened = {
  readonly kind: "unopened";
  /** `refused`: the URL is not allowed. `credentials`: they cannot be used. `unresolved`: a DNS lookup failed, retry. */
  readonly problem: "refused" | "credentials" | "unresolved";
  readonly message: string;
};

const unopened = (problem: Unopened["problem"], message: string): Unopened => ({ kind: "unopened", problem, message });

export async function openRepository(
  repository: Repository,
  { context, settings }: OpenOptions,
): Promise<OpenRepository | Unopened> {
  const { policy, inherited } = context;
  const parsed = parseRemote(repository.url, policy);
  if (!parsed.ok) return unopened("refused", parsed.message);
  const { remote } = parsed;
  const mismatch = checkCredentials(remote, repository.credentials);
  if (mismatch) return mismatch;
  const addresses = await checkedAddresses(remote, { policy, isProxied: hasProxy(inherited) });
  if ("kind" in addresses) return addresses;
  await mkdir(context.home, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(context.home, "git-"));
  const dispose = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const place = { folder, addresses, inherited };
    const access =
      remote.kind === "http" ? await overHttp(remote, repository, place) : await overSsh(remote, repository, place);
    return {
      kind: "open",
      remote: remote.kind === "http" ? remote.url.href : remote.url,
      env: {
        ...gitEnvironment({ ...context, home: folder }),
        ...access.env,
        ...settingVariables([...gitSettings(policy), ...settings, ...access.settings]),
      },
      ...(access.authorization !== undefined && { authorization: access.authorization }),
      secrets: [access.authorization ?? "", remote.kind === "http" ? remote.password : ""],
      dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** For requests that this process makes itself: nothing is looked up, and no file is written. */
export function httpAccess(
  { url, credentials }: Pick<Repository, "url" | "credentials">,
  policy: NetworkPolicy,
): HttpAccess | Unopened | undefined {
  const parsed = parseRemote(url, policy);
  if (!parsed.ok) return unopened("refused", parsed.message);
  const { remote } = parsed;
  if (remote.kind !== "http") return undefined;
  const mismatch = checkCredentials(remote, credentials);
  if (mismatch) return mismatch;
  const authorization = authorizationHeader(remote, credentials);
  return { kind: "http", url: remote.url, ...(authorization !== undefined && { authorization }) };
}

export interface HttpAccess {
  readonly kind: "http";
  /** Without credentials. */
  readonly url: URL;
  readonly authorization?: string;
}

function checkCredentials(remote: Remote, credentials: RepositoryCredentials): Unopened | undefined {
  if (remote.kind === "http") {
    if (credentials.kind === "ssh")
      return unopened(
        "refused",
        "the repository's URL is https, but its credentials are an SSH key; use a token or a user name and password, or an ssh:// URL",
      );
    const isBroken = credentials.kind === "basic" && /[\r\n]/.test(credentials.username + credentials.password);
    return isBroken
      ? unopened("credentials", "the Git credentials contain a line break; remove it from the Secret")
      : undefined;
  }
  if (credentials.kind !== "ssh") {
    return unopened("credentials", "the repository's URL is SSH, but there is no SSH key; set gitAuth.sshAuth");
  }
  if (credentials.knownHosts.trim() !== "") return undefined;
  return unopened(
    "refused",
    "the repository's URL is SSH, but known_hosts is empty, so the host cannot be verified; add the key known_hosts to the Secret of the SSH key",
  );
}

interface Network {
  readonly policy: NetworkPolicy;
  readonly isProxied: boolean;
}

async function checkedAddresses(remote: Remote, { policy, isProxied }: Network): Promise<readonly string[] | Unopened> {
  const resolved = await resolveHost(remote.kind === "http" ? remote.url.hostname : remote.host, policy);
  if (resolved.kind === "resolved") return resolved.addresses;
  if (resolved.kind === "forbidden") return unopened("refused", resolved.message);
  // Behind a proxy, the proxy may be the only one that can resolve the name.
  return remote.kind === "http" && isProxied ? [] : unopened("unresolved", resolved.message);
}

interface Place {
  readonly folder: string;
  readonly addresses: readonly string[];
  readonly inherited: GitProcessContext["inherited"];
}

interface Access {
  readonly settings: readonly GitConfigLine[];
  readonly env: Readonly<Record<string, string>>;
  readonly authorization?: string;
}

type HttpRemote = Extract<Remote, { kind: "http" }>;
type SshRemote = Extract<Remote, { kind: "ssh" }>;

async function overHttp(remote: HttpRemote, { credentials, ca }: Repository, place: Place): Promise<Access> {
  const { url } = remote;
  const authorization = authorizationHeader(remote, credentials);
  const settings: GitConfigLine[] = [];
  // Only for this origin.
  if (authorization) settings.push([`http.${url.origin}/.extraHeader`, `Authorization: ${authorization}`]);
  if (place.addresses.length > 0 && url.hostname !== place.addresses[0] && !url.hostname.startsWith("[")) {
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    settings.push(["http.curloptResolve", `${url.hostname}:${port}:${place.addresses.map(bracketIpv6).join(",")}`]);
  }
  const trusted = ca ?? (hasCaVariables(place.inherited) ? await trustedCaCertificates(place.inherited) : undefined);
  const env =
    trusted === undefined ? {} : { GIT_SSL_CAINFO: await writePrivate(join(place.folder, "ca.pem"), trusted) };
  return { settings, env, ...(authorization !== undefined && { authorization }) };
}

/** The given credentials, or those in the URL. */
function authorizationHeader(remote: HttpRemote, credentials: RepositoryCredentials): string | undefined {
  const { username, password } = credentials.kind === "basic" ? credentials : remote;
  return username || password ? `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` : undefined;
}

const bracketIpv6 = (address: string): string => (address.includes(":") ? `[${address}]` : address);

async function overSsh(remote: SshRemote, { credentials }: Repository, place: Place): Promise<Access> {
  if (credentials.kind !== "ssh") return { settings: [], env: {} };
  const keyFile = await writePrivate(join(place.folder, "key"), `${unixLines(credentials.privateKey).trimEnd()}\n`);
  const knownHostsFile = await writePrivate(
    join(place.folder, "known_hosts"),
    `${unixLines(credentials.knownHosts).trimEnd()}\n`,
  );
  const address = place.addresses[0] ?? remote.host;
  const env: Record<string, string> = {
    GIT_SSH_VARIANT: "ssh",
    GIT_SSH_COMMAND: sshCommand({ keyFile, knownHostsFile, host: remote.host, port: remote.port, address }),
  };
  if (credentials.passphrase !== undefined) {
    env["GIT_SSH_PASSPHRASE"] = credentials.passphrase;
    env["SSH_ASKPASS"] = await writePrivate(
      join(place.folder, "askpass"),
      `#!/bin/sh\nprintf '%s\\n' "$GIT_SSH_PASSPHRASE"\n`,
      0o700,
    );
    env["SSH_ASKPASS_REQUIRE"] = "force";
  }
  return { settings: [], env };
}

const unixLines = (text: string): string => text.replaceAll("\r\n", "\n");

async function writePrivate(path: string, text: string, mode = 0o600): Promise<string> {
  await writeFile(path, text, { mode });
  return path;
}
