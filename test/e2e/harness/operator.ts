/** The operator as a process on this machine, so that a test can kill it. The agent image is published to the cluster. */
import { join } from "node:path";

import { operatorNamespace } from "@pko/install";
import { deployableImage } from "@pko/cluster";
import { builtin, type Client } from "@pko/kube";
import { programPath, spawnChild, type ChildProcess } from "@pko/testkit";

import { assertNoErrors, operatorErrors } from "../../logs/errors.ts";
import { operatorAccount } from "../../rights/account.ts";
import { assertNoneForbidden, forbiddenIn } from "../../rights/forbidden.ts";
import { clusterClient, clusterCredentials, kubectl, machineAddress, runFolder } from "./cluster.ts";

export interface Operator {
  readonly client: Client;
  log(): Promise<string>;
  /** Kills the process and starts another one. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

/** A busy machine may not respond within the default timeout of requests, which is shorter than that of tests. */
export const defaultTimeout: ExpectedTrouble = { errors: [/no response \(DEADLINE\)/] };

/**
 * Fails if the logs of an installed operator's pods contain an error, or a response with 403. A pod that starts has no log,
 * and one that terminates may be removed before its log is read.
 */
export async function assertCleanLogs(
  namespace: string,
  selector: string,
  expected: ExpectedTrouble = {},
): Promise<void> {
  await kubectl(["rollout", "status", "deployment", "-n", namespace, "-l", selector, "--timeout=120s"]);
  const { items } = await (await clusterClient()).list(builtin.pods, { namespace, labelSelector: selector });
  const pods = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const logs = await Promise.all(
    pods.flatMap(({ metadata, status }) => {
      const read = ["logs", metadata.name ?? "", "-n", namespace];
      const hasRestarted = status?.containerStatuses?.some(({ restartCount }) => restartCount > 0);
      // What crashed logged why before the restart.
      return hasRestarted ? [kubectl([...read, "--previous"]), kubectl(read)] : [kubectl(read)];
    }),
  );
  assertCleanLog(logs.join("\n"), expected);
}

function assertCleanLog(log: string, { forbidden, errors }: ExpectedTrouble = {}): void {
  assertNoneForbidden(forbiddenIn(log), forbidden);
  assertNoErrors(operatorErrors(log), errors);
}

/** What the tests provoke; anything else fails the file. */
interface ExpectedTrouble {
  /** Responses with 403. */
  readonly forbidden?: readonly RegExp[];
  /** Errors in the operator's log. */
  readonly errors?: readonly RegExp[];
}

let image: Promise<string> | undefined;

/** The operator image: `make test` publishes it once for all processes, and otherwise this process does. */
export function publishedImage(): Promise<string> {
  const given = process.env["TEST_OPERATOR_IMAGE"];
  image ??= given ? Promise.resolve(given) : deployableImage();
  return image;
}

export interface OperatorSettings extends ExpectedTrouble {
  readonly flags?: readonly string[];
  /** Environment variables of the operator, as the chart's `extraEnv` sets them. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Serves only the given namespaces of a cluster that has our API, with the RBAC rules of an installation. `stop` fails if the API server answered a request
 * with 403, if the operator logged an error, or if it had already ended.
 */
export async function startOperator(
  namespaces: readonly string[],
  { flags = [], env = {}, ...expected }: OperatorSettings = {},
): Promise<Operator> {
  const agentImage = await publishedImage();
  const id = crypto.randomUUID();
  const logFile = join(runFolder, `operator-${id}.log`);
  const kubeconfig = join(runFolder, `kubeconfig-${id}`);
  const account = await operatorAccount({ admin: await clusterCredentials(), home: operatorNamespace });
  await Bun.write(kubeconfig, account.kubeconfig);
  const start = (): ChildProcess =>
    spawnChild({
      command: [
        process.execPath,
        programPath("operator"),
        `--kubeconfig=${kubeconfig}`,
        `--agent-image=${agentImage}`,
        `--watch-namespaces=${namespaces.join(",")}`,
        "--probe-address=127.0.0.1:0",
        "--metrics-address=127.0.0.1:0",
        "--allow-http",
        `--allow-addresses=${machineAddress}`,
        "--min-resync=10s",
        "--reference-check-interval=3s",
        // A status write may take a third of this. A busy machine must not cause errors in the log.
        "--kube-api-timeout=180s",
        ...flags,
      ],
      logFile,
      env,
    });
  let operator = start();
  return {
    client: await clusterClient(),
    log: () => Bun.file(logFile).text(),
    async crash() {
      await operator.stop("SIGKILL");
      operator = start();
    },
    async stop() {
      const endedEarly = operator.running ? undefined : await operator.log();
      await operator.stop();
      await account.remove();
      assertCleanLog(await Bun.file(logFile).text(), expected);
      if (endedEarly !== undefined) throw new Error(`the operator ended before it was stopped:\n${endedEarly}`);
    },
  };
}
