/** Credentials from a kubeconfig file. The caller names the file: the ambient KUBECONFIG is never read. */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";

import { parse } from "yaml";

import { systemClock, type Clock } from "../clock.ts";
import { fileText, type Access, type Credentials, type Source } from "./credentials.ts";
import { execCredential, type ExecCredential, type ExecPlugin } from "./exec-credential.ts";
import type { TlsSettings } from "./http.ts";
import { arrayAt, objectAt, textAt, type JsonObject } from "./json.ts";

export interface KubeconfigOptions {
  /** The context to use, when it is not the current one. */
  readonly context?: string;
  readonly clock?: Clock;
}

export async function kubeconfigCredentials(path: string, options: KubeconfigOptions = {}): Promise<Credentials> {
  const file: File = {
    path,
    folder: dirname(resolve(path)),
    content: await readKubeconfig(path),
    clock: options.clock ?? systemClock,
  };
  const { cluster, user, namespace } = selectContext(file, options.context);
  const server = textAt(cluster, "server");
  if (server === undefined) throw refused(file, "the cluster has no server");
  refuseUnsupported(file, { cluster, user });
  const proxy = textAt(cluster, "proxy-url");
  return {
    server: server.replace(/\/+$/, ""),
    ...(namespace !== undefined && { namespace }),
    ...(proxy !== undefined && { proxy }),
    access: accessOf(file, { cluster, user }),
  };
}

interface File {
  readonly path: string;
  /** Relative paths in it start here. */
  readonly folder: string;
  readonly content: unknown;
  readonly clock: Clock;
}

interface Entries {
  readonly cluster: JsonObject;
  readonly user: JsonObject;
}

async function readKubeconfig(path: string): Promise<unknown> {
  const text = await readFile(path, "utf8");
  try {
    const content: unknown = parse(text);
    return content;
  } catch {
    // The parser's message quotes lines of the file, which may hold a token.
    throw new Error(`kubeconfig ${path} is not YAML`);
  }
}

function selectContext(file: File, wanted?: string): Entries & { readonly namespace: string | undefined } {
  const name = wanted ?? textAt(file.content, "current-context");
  if (name === undefined) throw refused(file, "it has no current-context, and none was asked for");
  const context = entry(file, "context", name);
  return {
    cluster: entry(file, "cluster", textAt(context, "cluster")),
    user: textAt(context, "user") === undefined ? {} : entry(file, "user", textAt(context, "user")),
    namespace: textAt(context, "namespace"),
  };
}

function entry(file: File, kind: "cluster" | "context" | "user", name: string | undefined): JsonObject {
  const found = arrayAt(file.content, `${kind}s`).find((item) => textAt(item, "name") === name);
  if (name === undefined || found === undefined) throw refused(file, `it has no ${kind} "${name ?? ""}"`);
  return objectAt(found, kind);
}

/** What we cannot honour must not be passed over: ignoring `as`, say, would act with the rights of someone else. */
function refuseUnsupported(file: File, { cluster, user }: Entries): void {
  for (const field of ["as", "as-uid", "as-groups", "as-user-extra", "auth-provider", "username", "password"]) {
    if (user[field] !== undefined) throw refused(file, `"${field}" of a user is not supported`);
  }
  const proxy = textAt(cluster, "proxy-url");
  if (proxy !== undefined && !/^https?:/.test(proxy)) throw refused(file, "only http and https proxies are supported");
  const hasAuthority = cluster["certificate-authority"] ?? cluster["certificate-authority-data"];
  if (cluster["insecure-skip-tls-verify"] === true && hasAuthority !== undefined) {
    throw refused(file, "certificate-authority and insecure-skip-tls-verify exclude each other");
  }
}

function accessOf(file: File, { cluster, user }: Entries): Source<Access> {
  const ca = material(file, cluster, "certificate-authority");
  const cert = material(file, user, "client-certificate");
  const key = material(file, user, "client-key");
  const token = tokenSource(file, user);
  const plugin = pluginSource(file, { cluster, user });
  const serverName = textAt(cluster, "tls-server-name");
  return async (refresh) => {
    const issued: ExecCredential = (await plugin?.(refresh)) ?? {};
    const tls: Mutable<TlsSettings> = {};
    if (serverName !== undefined) tls.serverName = serverName;
    if (cluster["insecure-skip-tls-verify"] === true) tls.insecure = true;
    if (ca) tls.ca = await ca(refresh);
    if (cert && key) Object.assign(tls, { cert: await cert(refresh), key: await key(refresh) });
    else if (issued.cert !== undefined && issued.key !== undefined) {
      Object.assign(tls, { cert: issued.cert, key: issued.key });
    }
    const bearer = (await token?.(refresh))?.trim() ?? issued.token;
    return bearer === undefined ? { tls } : { tls, token: bearer };
  };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** A certificate or key: in the file itself, in base64, or in a file of its own. */
function material(file: File, holder: JsonObject, field: string): Source<string> | undefined {
  const data = textAt(holder, `${field}-data`);
  if (data !== undefined) {
    const text = Buffer.from(data, "base64").toString("utf8");
    return async () => text;
  }
  const path = textAt(holder, field);
  return path === undefined ? undefined : fileText(resolve(file.folder, path), file.clock);
}

function tokenSource(file: File, user: JsonObject): Source<string> | undefined {
  const path = textAt(user, "tokenFile");
  if (path !== undefined) return fileText(resolve(file.folder, path), file.clock);
  const token = textAt(user, "token");
  return token === undefined ? undefined : async () => token;
}

function pluginSource(file: File, { cluster, user }: Entries): Source<ExecCredential> | undefined {
  if (user["exec"] === undefined) return undefined;
  const exec = objectAt(user, "exec");
  const command = textAt(exec, "command");
  if (command === undefined) throw refused(file, "exec has no command");
  const env: Record<string, string> = {};
  for (const item of arrayAt(exec, "env")) env[textAt(item, "name") ?? ""] = textAt(item, "value") ?? "";
  const plugin: ExecPlugin = {
    apiVersion: textAt(exec, "apiVersion") ?? "",
    // As kubectl does: a path is relative to the file, a bare name is looked up on PATH.
    command: command.includes("/") ? resolve(file.folder, command) : command,
    args: arrayAt(exec, "args").map(String),
    env,
    ...(exec["provideClusterInfo"] === true && { cluster: clusterInfo(cluster) }),
  };
  return execCredential(plugin, file.clock);
}

function clusterInfo(cluster: JsonObject): object {
  const fields = ["server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url"];
  return Object.fromEntries(fields.filter((name) => name in cluster).map((name) => [name, cluster[name]]));
}

function refused(file: File, why: string): Error {
  return new Error(`kubeconfig ${file.path}: ${why}`);
}
