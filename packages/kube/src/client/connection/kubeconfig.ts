/**
 * Credentials from the kubeconfig files that the caller names: the environment variable KUBECONFIG is never read here.
 * Several files are merged as kubectl merges them: for each entry, the first file that has it counts.
 */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";

import { parse } from "yaml";

import { systemClock, type Clock } from "../../clock.ts";
import { fileText, type Access, type Credentials, type Source } from "./credentials.ts";
import { execCredential, type ExecCredential, type ExecPlugin } from "./exec-credential.ts";
import type { TlsSettings } from "../requests/http.ts";
import { arrayAt, objectAt, textAt, type JsonObject } from "../requests/json.ts";

export interface KubeconfigOptions {
  /** The context to use instead of the current one. */
  readonly context?: string;
  readonly clock?: Clock;
}

export async function kubeconfigCredentials(
  paths: string | readonly string[],
  options: KubeconfigOptions = {},
): Promise<Credentials> {
  const files = await readFiles(typeof paths === "string" ? [paths] : paths, options.clock ?? systemClock);
  const { cluster, user, namespace } = selectContext(files, options.context);
  const server = textAt(cluster.value, "server");
  if (server === undefined) throw invalid(cluster.file, "the cluster has no server");
  assertSupported({ cluster, user });
  const proxy = textAt(cluster.value, "proxy-url");
  return {
    server: server.replace(/\/+$/, ""),
    ...(namespace !== undefined && { namespace }),
    ...(proxy !== undefined && { proxy }),
    access: accessSource({ cluster, user }),
  };
}

interface File {
  readonly path: string;
  /** Relative paths in the file start here. */
  readonly folder: string;
  readonly content: unknown;
  readonly clock: Clock;
}

type Files = readonly [File, ...File[]];

/** A part of a file. */
interface Entry {
  readonly file: File;
  readonly value: JsonObject;
}

interface Entries {
  readonly cluster: Entry;
  readonly user: Entry;
}

/** Of several files, those that do not exist are skipped, as kubectl does. */
async function readFiles(paths: readonly string[], clock: Clock): Promise<Files> {
  const files: File[] = [];
  for (const path of paths) {
    const content = await readKubeconfig(path).catch((error: unknown) => {
      if (paths.length > 1 && error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    });
    if (content !== undefined) files.push({ path, folder: dirname(resolve(path)), content, clock });
  }
  const [first, ...others] = files;
  if (!first) throw new Error(`none of the kubeconfig files exists: ${paths.join(", ")}`);
  return [first, ...others];
}

async function readKubeconfig(path: string): Promise<unknown> {
  const text = await readFile(path, "utf8");
  try {
    const content: unknown = parse(text);
    return content;
  } catch {
    // The parser's message quotes lines of the file, which may contain a token.
    throw new Error(`kubeconfig ${path} is not YAML`);
  }
}

function selectContext(files: Files, wanted?: string): Entries & { readonly namespace: string | undefined } {
  const name = wanted ?? currentContext(files);
  if (name === undefined) throw invalid(files[0], "it has no current-context, and no context was requested");
  const context = entry(files, "context", name);
  const userName = textAt(context.value, "user");
  return {
    cluster: entry(files, "cluster", textAt(context.value, "cluster")),
    user: userName === undefined ? { file: context.file, value: {} } : entry(files, "user", userName),
    namespace: textAt(context.value, "namespace"),
  };
}

const currentContext = (files: Files): string | undefined =>
  files.map(({ content }) => textAt(content, "current-context")).find(Boolean);

/** The name of the current context in the files. */
export async function kubeconfigCurrentContext(paths: readonly string[]): Promise<string | undefined> {
  return currentContext(await readFiles(paths, systemClock));
}

function entry(files: Files, kind: "cluster" | "context" | "user", name: string | undefined): Entry {
  for (const file of files) {
    const found = arrayAt(file.content, `${kind}s`).find((item) => textAt(item, "name") === name);
    if (name !== undefined && found !== undefined) return { file, value: objectAt(found, kind) };
  }
  throw invalid(files[0], `it has no ${kind} "${name ?? ""}"`);
}

/** The names of the contexts in the files, in their order. */
export async function kubeconfigContexts(paths: readonly string[]): Promise<string[]> {
  const files = await readFiles(paths, systemClock);
  const names = files.flatMap(({ content }) => arrayAt(content, "contexts").map((item) => textAt(item, "name") ?? ""));
  return [...new Set(names.filter(Boolean))];
}

/** An unsupported field is an error: ignoring `as`, for example, would act with another user's permissions. */
function assertSupported({ cluster: { file, value: cluster }, user }: Entries): void {
  for (const field of ["as", "as-uid", "as-groups", "as-user-extra", "auth-provider", "username", "password"]) {
    if (user.value[field] !== undefined) throw invalid(user.file, `"${field}" of a user is not supported`);
  }
  const proxy = textAt(cluster, "proxy-url");
  if (proxy !== undefined && !/^https?:/.test(proxy)) throw invalid(file, "only http and https proxies are supported");
  const ca = cluster["certificate-authority"] ?? cluster["certificate-authority-data"];
  if (cluster["insecure-skip-tls-verify"] === true && ca !== undefined) {
    throw invalid(file, "certificate-authority and insecure-skip-tls-verify are mutually exclusive");
  }
}

function accessSource({ cluster, user }: Entries): Source<Access> {
  const ca = material(cluster, "certificate-authority");
  const cert = material(user, "client-certificate");
  const key = material(user, "client-key");
  const token = tokenSource(user);
  const plugin = pluginSource({ cluster, user });
  const serverName = textAt(cluster.value, "tls-server-name");
  return async (refresh) => {
    const issued: ExecCredential = (await plugin?.(refresh)) ?? {};
    const tls: Mutable<TlsSettings> = {};
    if (serverName !== undefined) tls.serverName = serverName;
    if (cluster.value["insecure-skip-tls-verify"] === true) tls.insecure = true;
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

/** A certificate or key: inline in base64, or in a separate file. */
function material({ file, value: holder }: Entry, field: string): Source<string> | undefined {
  const data = textAt(holder, `${field}-data`);
  if (data !== undefined) {
    const text = Buffer.from(data, "base64").toString("utf8");
    return async () => text;
  }
  const path = textAt(holder, field);
  return path === undefined ? undefined : fileText(resolve(file.folder, path), file.clock);
}

function tokenSource({ file, value: user }: Entry): Source<string> | undefined {
  const path = textAt(user, "tokenFile");
  if (path !== undefined) return fileText(resolve(file.folder, path), file.clock);
  const token = textAt(user, "token");
  return token === undefined ? undefined : async () => token;
}

function pluginSource({ cluster, user: { file, value: user } }: Entries): Source<ExecCredential> | undefined {
  if (user["exec"] === undefined) return undefined;
  const exec = objectAt(user, "exec");
  const command = textAt(exec, "command");
  if (command === undefined) throw invalid(file, "exec has no command");
  const env: Record<string, string> = {};
  for (const item of arrayAt(exec, "env")) env[textAt(item, "name") ?? ""] = textAt(item, "value") ?? "";
  const plugin: ExecPlugin = {
    apiVersion: textAt(exec, "apiVersion") ?? "",
    // Like kubectl: a path is relative to the kubeconfig, a bare name is looked up in PATH.
    command: command.includes("/") ? resolve(file.folder, command) : command,
    args: arrayAt(exec, "args").map(String),
    env,
    ...(exec["provideClusterInfo"] === true && { cluster: clusterInfo(cluster.value) }),
  };
  return execCredential(plugin, file.clock);
}

function clusterInfo(cluster: JsonObject): object {
  const fields = ["server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url"];
  return Object.fromEntries(fields.filter((name) => name in cluster).map((name) => [name, cluster[name]]));
}

function invalid(file: File, why: string): Error {
  return new Error(`kubeconfig ${file.path}: ${why}`);
}
