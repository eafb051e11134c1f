/** Credentials from an exec plugin (client.authentication.k8s.io), which cloud providers use to log users in. */
import { execFile } from "node:child_process";

import { systemClock, type Clock } from "../../clock.ts";
import type { Source } from "./credentials.ts";
import { objectAt, parseJson, textAt } from "../requests/json.ts";

export interface ExecPlugin {
  readonly apiVersion: string;
  /** A path, or a name to look up in PATH. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Passed to the plugin if it sets `provideClusterInfo`. */
  readonly cluster?: object;
}

export interface ExecCredential {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Milliseconds since the epoch; absent if it is valid until the server rejects it. */
  readonly expiresAt?: number;
}

const timeoutMs = 30_000;
// Renewed a little early, so that it does not expire in transit.
const marginMs = 10_000;
const supported = new Set(["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]);

/** Runs the plugin if there is no valid credential; concurrent callers share one run. */
export function execCredential(plugin: ExecPlugin, clock: Clock = systemClock): Source<ExecCredential> {
  if (!supported.has(plugin.apiVersion)) {
    throw new Error(`exec plugin ${plugin.command}: apiVersion ${plugin.apiVersion} is not supported`);
  }
  let last: ExecCredential | undefined;
  let running: Promise<ExecCredential> | undefined;
  return async (refresh = false) => {
    if (last && !refresh && (last.expiresAt ?? Infinity) - marginMs > clock.now()) return last;
    running ??= runPlugin(plugin).finally(() => (running = undefined));
    last = await running;
    return last;
  };
}

async function runPlugin(plugin: ExecPlugin): Promise<ExecCredential> {
  const output = await standardOutput(plugin);
  const status = objectAt(parseOutput(plugin, output), "status");
  const token = textAt(status, "token");
  const cert = textAt(status, "clientCertificateData");
  const key = textAt(status, "clientKeyData");
  if (token === undefined && (cert === undefined || key === undefined)) {
    throw new Error(`exec plugin ${plugin.command} returned neither a token nor a client certificate`);
  }
  const expiresAt = Date.parse(textAt(status, "expirationTimestamp") ?? "");
  return {
    ...(token !== undefined && { token }),
    ...(cert !== undefined && key !== undefined && { cert, key }),
    ...(!Number.isNaN(expiresAt) && { expiresAt }),
  };
}

function parseOutput(plugin: ExecPlugin, output: string): unknown {
  try {
    return parseJson(output);
  } catch {
    // The parser's message quotes its input, which may contain a token.
    throw new Error(`exec plugin ${plugin.command} did not print an ExecCredential`);
  }
}

async function standardOutput(plugin: ExecPlugin): Promise<string> {
  const spec = { interactive: false, ...(plugin.cluster && { cluster: plugin.cluster }) };
  const info = JSON.stringify({ apiVersion: plugin.apiVersion, kind: "ExecCredential", spec });
  const env = { ...process.env, ...plugin.env, KUBERNETES_EXEC_INFO: info };
  return await new Promise((resolve, reject) => {
    const child = execFile(plugin.command, plugin.args, { env, timeout: timeoutMs }, (error, output) => {
      // Neither stream is quoted: both may contain secrets.
      if (error) reject(new Error(`exec plugin ${plugin.command} failed (${error.code ?? error.signal ?? "unknown"})`));
      else resolve(output);
    });
    child.stdin?.end();
  });
}
