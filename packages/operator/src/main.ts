/**
 * The process: the operator, or with `console` or `profile` as its first argument one of these commands. The operator runs
 * until a signal ends it.
 */
import { version } from "@pko/api";
import { inClusterCredentials, kubeconfigCredentials, logger, runToExit, type Logger } from "@pko/kube";
import { ownFlag } from "@pko/process/help";
import { runProfile, serveProfiles } from "@pko/process/profiles";

import { operator } from "./operator.ts";
import { operatorHelp, parseOptions } from "./options.ts";
import { tuneRuntime } from "./runtime.ts";
import { logLevelSwitch } from "./shared/channels/log-level.ts";

async function run(args: readonly string[]): Promise<void> {
  const [command, ...rest] = args;
  if (command === "profile") return await print(await runProfile(rest));
  if (command === "console") {
    // The operator does not load it.
    const { runConsole } = await import("@pko/console");
    return await runConsole(rest, process.env);
  }
  switch (ownFlag(args)) {
    case "help":
      return await print(operatorHelp());
    case "version":
      return await print(`${version}\n`);
    case undefined:
      return await runOperator(args);
  }
}

async function runOperator(args: readonly string[]): Promise<void> {
  const options = parseOptions(args, process.env);
  const logLevel = logLevelSwitch(options.log.level);
  const log = logger({ ...options.log, level: () => logLevel.current }).child({ logger: "operator" });
  offerProfiles(log);
  const credentials =
    options.kubeconfig === undefined ? await inClusterCredentials() : await kubeconfigCredentials(options.kubeconfig);
  const manager = await operator({ options, credentials, log, logLevel, environment: process.env });
  tuneRuntime({ isReady: () => manager.ready().ok });
  await runToExit(manager, log);
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

try {
  await run(process.argv.slice(2));
  process.exit(0);
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
