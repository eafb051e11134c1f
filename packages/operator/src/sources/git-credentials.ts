/** Credentials for a repository: from the Secrets that a Stack names, in the forms that polling and the workspace need. */
import type { GitAuth, SecretKey, WorkspaceSpec } from "@pko/api";
import type { RepositoryCredentials } from "@pko/git";
import { assertNever } from "@pko/rpc";

import { authorityKey, forgeHosts, knownHostsKey } from "./server-trust.ts";

export type GitCredentials =
  | RepositoryCredentials
  /** Exchanged for a token when the repository is asked. */
  | {
      readonly kind: "githubApp";
      readonly appId: string;
      readonly installationId: string;
      readonly privateKey: string;
    };

/** The names under which the Workspace finds the same credentials. */
export type WorkspaceAuth = NonNullable<NonNullable<WorkspaceSpec["git"]>["auth"]>;

type CredentialsView =
  | {
      readonly kind: "found";
      readonly credentials: GitCredentials;
      /** Certificates of the server's private authority, in PEM. */
      readonly ca?: string;
      readonly auth: WorkspaceAuth;
    }
  | { readonly kind: "missing"; readonly message: string };

/** The text under a key of a Secret of the Stack's namespace; undefined when either is not there. */
export type ReadSecret = (name: string) => Promise<Readonly<Record<string, string>> | undefined>;

export async function readCredentials(auth: GitAuth, readSecret: ReadSecret): Promise<CredentialsView> {
  const known = auth.kind === "secret" ? await authOfSecret(auth.name, readSecret) : auth;
  if ("message" in known) return { kind: "missing", message: known.message };
  const values = new Map<SecretKey, string>();
  for (const key of keysOf(known)) {
    const secret = await readSecret(key.name);
    const value = secret?.[key.key];
    if (!secret) return missing(`there is no Secret ${key.name}, which holds the credentials of the repository`);
    if (value === undefined) return missing(`the Secret ${key.name} has no key ${key.key}`);
    values.set(key, value);
  }
  const place = placeOf(known);
  const beside = place && (await readSecret(place.name));
  const valueOf = (key: SecretKey): string => values.get(key) ?? "";
  const credentials = credentialsOf(known, valueOf, beside?.[knownHostsKey]);
  const ca = credentials.kind === "ssh" ? undefined : beside?.[authorityKey];
  return { kind: "found", credentials, auth: workspaceAuth(known), ...(ca && { ca }) };
}

/** A Secret made from a file often ends with a line break that is no part of what it holds. */
export const lineOf = (value: string): string => value.replace(/[\r\n]+$/, "");

const missing = (message: string): CredentialsView => ({ kind: "missing", message });

type PlainAuth =
  | Exclude<GitAuth, { kind: "secret" }>
  /** No credentials, but the CA of the server: a public repository behind a private CA. */
  | { readonly kind: "ca"; readonly ca: SecretKey };

/** A Secret whose keys tell which way to sign in it holds. */
async function authOfSecret(name: string, readSecret: ReadSecret): Promise<PlainAuth | { readonly message: string }> {
  const secret = await readSecret(name);
  if (!secret) return { message: `there is no Secret ${name}, which holds the credentials of the repository` };
  const key = (key: string): SecretKey => ({ name, key });
  if (secret["sshPrivateKey"] !== undefined) {
    const password = secret["password"] !== undefined && { password: key("password") };
    return { kind: "ssh", privateKey: key("sshPrivateKey"), ...password };
  }
  if (secret["accessToken"] !== undefined) return { kind: "token", token: key("accessToken") };
  if (secret["username"] !== undefined && secret["password"] !== undefined) {
    return { kind: "basic", userName: key("username"), password: key("password") };
  }
  if (secret[authorityKey] !== undefined) return { kind: "ca", ca: key(authorityKey) };
  return {
    message:
      `the Secret ${name} has none of sshPrivateKey, accessToken, username with password, and ca.crt; ` +
      "add the key that opens the repository",
  };
}

function keysOf(auth: PlainAuth): SecretKey[] {
  switch (auth.kind) {
    case "none":
      return [];
    case "token":
      return [auth.token];
    case "basic":
      return [auth.userName, auth.password];
    case "ssh":
      return auth.password ? [auth.privateKey, auth.password] : [auth.privateKey];
    case "githubApp":
      return [auth.appId, auth.installationId, auth.privateKey];
    case "ca":
      return [auth.ca];
    default:
      return assertNever(auth);
  }
}

/** Whose Secret also says whom to trust. */
function placeOf(auth: PlainAuth): SecretKey | undefined {
  switch (auth.kind) {
    case "none":
      return undefined;
    case "token":
      return auth.token;
    case "basic":
      return auth.password;
    case "ssh":
    case "githubApp":
      return auth.privateKey;
    case "ca":
      return auth.ca;
    default:
      return assertNever(auth);
  }
}

function credentialsOf(
  auth: PlainAuth,
  valueOf: (key: SecretKey) => string,
  knownHosts: string | undefined,
): GitCredentials {
  switch (auth.kind) {
    case "none":
    case "ca":
      return { kind: "none" };
    case "token":
      // The forges take a token as the password of any user.
      return { kind: "basic", username: "git", password: valueOf(auth.token).trim() };
    case "basic":
      return { kind: "basic", username: lineOf(valueOf(auth.userName)), password: lineOf(valueOf(auth.password)) };
    case "ssh":
      return {
        kind: "ssh",
        privateKey: valueOf(auth.privateKey),
        ...(auth.password && { passphrase: valueOf(auth.password) }),
        knownHosts: knownHosts ?? forgeHosts,
      };
    case "githubApp":
      return {
        kind: "githubApp",
        appId: valueOf(auth.appId).trim(),
        installationId: valueOf(auth.installationId).trim(),
        privateKey: valueOf(auth.privateKey),
      };
    default:
      return assertNever(auth);
  }
}

function workspaceAuth(auth: PlainAuth): WorkspaceAuth {
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
    case "ca":
      return { ca: auth.ca };
    default:
      return assertNever(auth);
  }
}
