/** The operator's process: reads its settings and credentials, and runs until a signal ends it. */
import { inClusterCredentials, kubeconfigCredentials, logger, runToExit } from "@pko/kube";

import { operator } from "./operator.ts";
import { parseOptions } from "./options.ts";

try {
  const options = parseOptions(process.argv.slice(2), process.env);
  const log = logger(options.log);
  const credentials =
    options.kubeconfig === undefined ? await inClusterCredentials() : await kubeconfigCredentials(options.kubeconfig);
  await runToExit(await operator({ options, credentials, log }), log);
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
