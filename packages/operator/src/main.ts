/** The process: the operator, or with `console` as its first argument the console. It runs until a signal ends it. */
import { inClusterCredentials, kubeconfigCredentials, logger, runToExit } from "@pko/kube";

import { operator } from "./operator.ts";
import { parseOptions } from "./options.ts";

try {
  const [command, ...rest] = process.argv.slice(2);
  if (command === "console") {
    // The operator does not load it.
    const { runConsole } = await import("@pko/console");
    await runConsole(rest, process.env);
    process.exit(0);
  }
  const options = parseOptions(process.argv.slice(2), process.env);
  const log = logger(options.log);
  const credentials =
    options.kubeconfig === undefined ? await inClusterCredentials() : await kubeconfigCredentials(options.kubeconfig);
  await runToExit(await operator({ options, credentials, log }), log);
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
