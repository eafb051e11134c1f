/**
 * The agent's executable. Wiring only.
 *
 *   agent [flags]           serves the workspace (options.ts lists the flags)
 *   agent install <path> [<folder>]
 *                           copies this executable, so that the bootstrap container can pass it to the workspace's image;
 *                           creates the folder in which that container starts, unless it exists
 *   agent repair <path>     replaces an incomplete copy
 *   agent version
 */
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { exitWhenWritten } from "@pko/process/exit";
import { ownFlag } from "@pko/process/help";
import { serveAgent } from "@pko/rpc/server";
import { createAgent } from "./agent.ts";
import { readCredentials, watchCredentials } from "./credentials.ts";
import { agentHelp, parseOptions } from "./options.ts";
import { installExecutable, repairExecutable } from "./system/install.ts";
import { createLog } from "./system/log.ts";
import { logUncaughtErrors } from "./system/uncaught-errors.ts";
import { reapOrphans } from "./system/orphans.ts";
import { Redactor } from "./system/redact.ts";
import { createWorkspaceFolder } from "./workspace/shell.ts";

/** Set by `bun build --define`. */
declare const AGENT_VERSION: string | undefined;
const version = typeof AGENT_VERSION === "string" ? AGENT_VERSION : "dev";

/** Short, because three small files are cheap to read and a new CA should be trusted soon. */
const certificatePollMs = 5000;
/** How long watchers have to read the last events and the result of a run after its end. */
const drainMs = 2_000;

const redactor = new Redactor();
const log = createLog(redactor, (line) => process.stderr.write(line), {
  print: (line) => process.stdout.write(line),
  keys: { namespace: process.env["POD_NAMESPACE"], pod: hostname() },
});

async function serve(args: readonly string[]): Promise<void> {
  // First, because the kernel drops signals that PID 1 does not handle yet.
  const stopped = stopSignal();
  logUncaughtErrors(log);
  if (process.pid === 1) reapOrphans();
  // The container starts the agent in a folder that is replaced when the program is checked out.
  process.chdir("/");
  // The shell that started the agent exports these: the CLI would take the link to the program's folder for the folder itself,
  // and a program that archives its own folder would find nothing in it.
  for (const name of ["PWD", "OLDPWD"]) delete process.env[name];
  const options = parseOptions(args, process.env);
  const agent = createAgent({ options, inherited: process.env, redactor, log, version });
  await agent.recover();
  const credentials = await readCredentials(options.tls);
  const server = serveAgent({
    service: agent.service,
    hostname: options.hostname,
    port: options.port,
    credentials,
    onFault: (method, error) => log.error("call failed", { method, error }),
  });
  const unwatch = watchCredentials(credentials, {
    folder: options.tls,
    intervalMs: certificatePollMs,
    onChange: (next) => {
      server.renew(next);
      log.info("certificate renewed");
    },
    onError: (error) => log.warn("cannot read certificate, will retry", { error }),
  });
  log.info("agent ready", { version, port: server.port });
  const signal = await stopped;
  log.info("agent stopping", { signal });
  unwatch();
  await agent.stop();
  await Promise.race([server.stop(false), sleep(drainMs)]);
  log.info("agent stopped");
}

async function stopSignal(): Promise<string> {
  return await new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => resolve(signal));
  });
}

async function install(target: string, folder: string | undefined): Promise<void> {
  if (folder !== undefined) await createWorkspaceFolder(folder, log);
  await installExecutable(process.execPath, target);
}

const args = process.argv.slice(2);
const [command = "", ...rest] = args;
const own = command === "version" ? "version" : ownFlag(args);
try {
  if (own === "version") process.stdout.write(`${version}\n`);
  else if (own === "help") process.stdout.write(agentHelp());
  else if (command === "install" && rest[0] !== undefined) await install(rest[0], rest[1]);
  else if (command === "repair" && rest[0] !== undefined) await repairExecutable(process.execPath, rest[0]);
  else await serve(args);
  await exitWhenWritten(0);
} catch (error) {
  log.error("agent failed", { error });
  await exitWhenWritten(1);
}
