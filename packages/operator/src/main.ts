/**
 * The process: the operator, or with `console` or `profile` as its first argument one of these commands. The operator runs
 * until a signal ends it.
 */
import { version } from "@pko/api";
import {
  inClusterCredentials,
  kubeconfigCredentials,
  logger,
  runToExit,
  type Logger,
  type LoggerOptions,
  type Manager,
} from "@pko/kube";
import { ownFlag } from "@pko/process/help";
import { runProfile, serveProfiles } from "@pko/process/profiles";
import { settingsOrExit } from "@pko/process/settings";
import { maskCredentials } from "@pko/records";

import { operator, type OperatorContext } from "./operator.ts";
import { operatorHelp, parseOptions } from "./options.ts";
import { tuneRuntime } from "./runtime.ts";
import { logLevelSwitch } from "./shared/channels/log-level.ts";

async function run(args: readonly string[]): Promise<void> {
  const [command, ...rest] = args;
  const own = ownFlag(args);
  if (own === "version") return await print(`${version}\n`);
  if (command === "profile") return await print(await runProfile(rest));
  if (command === "console") {
    // The operator does not load it.
    const { runConsole } = await import("@pko/console");
    return await runConsole(rest, process.env);
  }
  return own === "help" ? await print(operatorHelp()) : await runOperator(args);
}

/** The API server, admission webhooks and Git servers may repeat a URL or a header in their messages. */
const createLog = (options: LoggerOptions = {}): Logger =>
  logger({ ...options, redact: (text) => maskCredentials(text) }).child({ logger: "operator" });

async function runOperator(args: readonly string[]): Promise<void> {
  const options = settingsOrExit(createLog(), "the operator cannot start", () => parseOptions(args, process.env));
  const logLevel = logLevelSwitch(options.log.level);
  const log = createLog({ ...options.log, level: () => logLevel.current });
  offerProfiles(log);
  const manager = await start({ options, log, logLevel }).catch((error: unknown) => {
    log.error("the operator cannot start", { error });
    return process.exit(1);
  });
  tuneRuntime({ isReady: () => manager.ready().ok });
  await runToExit(manager, log);
}

type Starting = Pick<OperatorContext, "options" | "log" | "logLevel">;

async function start(starting: Starting): Promise<Manager> {
  const { kubeconfig } = starting.options;
  const credentials = kubeconfig === undefined ? await inClusterCredentials() : await kubeconfigCredentials(kubeconfig);
  return await operator({ ...starting, credentials, environment: process.env });
}

/** Until the process ends. They are not worth failing for. */
function offerProfiles(log: Logger): void {
  try {
    const server = serveProfiles();
    process.on("exit", () => server.stop());
  } catch (error) {
    log.warn("no profiles can be recorded, because their socket cannot be created", { error });
  }
}

/** The process may exit afterwards. */
async function print(output: string | Uint8Array): Promise<void> {
  await Bun.write(Bun.stdout, output);
}

const args = process.argv.slice(2);
try {
  await run(args);
  process.exit(0);
} catch (error) {
  // A person runs this command, and redirects what it prints to a file.
  if (args[0] === "profile") console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  else createLog().error("the process cannot continue", { error });
  process.exit(1);
}
