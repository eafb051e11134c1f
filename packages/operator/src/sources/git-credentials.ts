/**
 * Credentials for a Git repository, resolved from Secrets: one implementation for the Stack, which polls the repository, and
 * for the Workspace, whose agent fetches it.
 */
import { missingKey, missingObject, type GitAuth, type SecretKey, type WorkspaceSpec } from "@pko/api";
import type { RepositoryCredentials } from "@pko/git";

import { caKey, forgeHosts, knownHostsKey } from "./server-trust.ts";

export type GitCredentials =
  | RepositoryCredentials
  /** Git servers accept a token as the password of any user. */
  | { readonly kind: "token"; readonly token: string }
  /** Exchanged for a token when the repository is read. */
  | {
      readonly kind: "githubApp";
      readonly appId: string;
      readonly installationId: string;
      readonly privateKey: string;
    };

/** The keys of Secrets in which a Workspace finds the credentials. */
export type WorkspaceAuth = NonNullable<NonNullable<WorkspaceSpec["git"]>["auth"]>;
type AuthKey = NonNullable<WorkspaceAuth["token"]>;

/** The data of a Secret; undefined if it does not exist. */
export type SecretData = Readonly<Record<string, string>> | undefined;

interface Access {
  readonly kind: "found";
  readonly credentials: GitCredentials;
  /** Certificates of the server's private CA, in PEM. */
  readonly ca?: string;
}

interface Missing {
  readonly kind: "missing";
  readonly message: string;
}

const missing = (message: string): Missing => ({ kind: "missing", message });

/** The Secrets that hold the credentials, each once. */
export function secretNames({ githubApp, ...keys }: WorkspaceAuth): string[] {
  const all = [...Object.values(keys), ...Object.values(githubApp ?? {})];
  return [...new Set(all.map(({ name = "" }) => name).filter((name) => name !== ""))];
}

/** The order of precedence is the Go operator's: an SSH key, a token, a GitHub App, a user name and password. */
export function resolveCredentials(auth: WorkspaceAuth, dataOf: (name: string) => SecretData): Access | Missing {
  const reader = new CredentialsReader(dataOf);
  const credentials = reader.credentials(auth);
  const ca = reader.ca(auth);
  if (reader.problem !== undefined) return missing(reader.problem);
  return { kind: "found", credentials, ...(ca && { ca }) };
}

/** Reads values of Secrets, and keeps the first problem. */
class CredentialsReader {
  readonly #dataOf: (name: string) => SecretData;
  problem: string | undefined;

  constructor(dataOf: (name: string) => SecretData) {
    this.#dataOf = dataOf;
  }

  credentials({ sshPrivateKey, token, githubApp, username, password }: WorkspaceAuth): GitCredentials {
    if (sshPrivateKey) return this.#ssh(sshPrivateKey, password);
    if (token) return { kind: "token", token: this.#value(token).trim() };
    if (githubApp) {
      return {
        kind: "githubApp",
        appId: this.#value(githubApp.appID).trim(),
        installationId: this.#value(githubApp.installationID).trim(),
        privateKey: this.#value(githubApp.privateKey),
      };
    }
    if (username && password) {
      return {
        kind: "basic",
        username: withoutLineBreak(this.#value(username)),
        password: withoutLineBreak(this.#value(password)),
      };
    }
    if (username || password) this.problem ??= "spec.git.auth: username and password belong together; set both";
    return { kind: "none" };
  }

  /** The CA that `ca` names, otherwise the one in the Secret of the credentials. */
  ca({ sshPrivateKey, token, githubApp, password, ca }: WorkspaceAuth): string | undefined {
    if (sshPrivateKey) return undefined;
    if (ca) return this.#value(ca);
    const place = token ?? githubApp?.privateKey ?? password;
    return place && this.#dataOf(place.name ?? "")?.[caKey];
  }

  #ssh(key: AuthKey, password: AuthKey | undefined): GitCredentials {
    const privateKey = this.#value(key);
    const passphrase = password && this.#value(password);
    // Without its own known_hosts, only the well-known hosts are trusted: there is no trust on first use.
    const knownHosts = this.#dataOf(key.name ?? "")?.[knownHostsKey] ?? forgeHosts;
    return { kind: "ssh", privateKey, ...(passphrase && { passphrase }), knownHosts };
  }

  #value({ name = "", key }: AuthKey): string {
    const data = this.#dataOf(name);
    const value = data && Object.hasOwn(data, key) ? data[key] : undefined;
    if (!data) this.problem ??= noSecret(name);
    else if (!value) this.problem ??= missingKey(`Secret ${name}`, { key, user });
    return value ?? "";
  }
}

const user = "Git authentication";
const noSecret = (name: string): string => missingObject(`Secret ${name}`, user);

/** A Secret created from a file often ends with a line break that is not part of the value. */
const withoutLineBreak = (value: string): string => value.replace(/(?<![\r\n])[\r\n]+$/, "");

/** Reads a Secret of the Stack's namespace. */
export type ReadSecret = (name: string) => Promise<SecretData>;

/** The credentials of a Stack, and where its Workspace finds the same ones. */
export async function readCredentials(
  auth: GitAuth,
  readSecret: ReadSecret,
): Promise<(Access & { readonly auth: WorkspaceAuth }) | Missing> {
  const known = auth.kind === "secret" ? await authInSecret(auth.name, readSecret) : workspaceAuth(auth);
  if (typeof known === "string") return missing(known);
  const secrets = new Map<string, SecretData>();
  for (const name of secretNames(known)) secrets.set(name, await readSecret(name));
  const access = resolveCredentials(known, (name) => secrets.get(name));
  return access.kind === "found" ? { ...access, auth: known } : access;
}

/** The keys of the Secret show which kind of credentials it holds. A string is a problem. */
async function authInSecret(name: string, readSecret: ReadSecret): Promise<WorkspaceAuth | string> {
  const secret = await readSecret(name);
  if (!secret) return noSecret(name);
  const key = (key: string): SecretKey => ({ name, key });
  if (secret["sshPrivateKey"] !== undefined) {
    const password = secret["password"] !== undefined && { password: key("password") };
    return { sshPrivateKey: key("sshPrivateKey"), ...password };
  }
  if (secret["accessToken"] !== undefined) return { token: key("accessToken") };
  if (secret["username"] !== undefined && secret["password"] !== undefined) {
    return { username: key("username"), password: key("password") };
  }
  if (secret[caKey] !== undefined) return { ca: key(caKey) };
  return (
    `the Secret ${name} has none of the keys sshPrivateKey, accessToken, username and password, or ca.crt; ` +
    "add the keys that the repository requires"
  );
}

function workspaceAuth(auth: Exclude<GitAuth, { kind: "secret" }>): WorkspaceAuth {
  switch (auth.kind) {
    case "none":
      return {};
    case "token":
      return { token: auth.token };
    case "basic":
      return { username: auth.userName, password: auth.password };
    case "ssh":
      return { sshPrivateKey: auth.privateKey, ...(auth.password && { password: auth.password }) };
    case "githubApp":
      return {
        githubApp: { appID: auth.appId, installationID: auth.installationId, privateKey: auth.privateKey },
      };
  }
}
