/** The operator, with its agent's image published and its process on this machine, where a test may kill it. */
import { join } from "node:path";

import { operatorNamespace } from "@pko/api";
import { network, publishOperatorImage, repositoryRoot } from "@pko/cluster";
import type { Client } from "@pko/kube";
import { spawnChild, type ChildProcess } from "@pko/testkit";

import { operatorAccount } from "../../rights/account.ts";
import { assertNoneForbidden, forbiddenIn } from "../../rights/forbidden.ts";
import { clusterClient, clusterCredentials, installApi, kubectl, runFolder } from "./cluster.ts";

export interface Operator {
  readonly client: Client;
  /** What it has logged, as one text. */
  log(): Promise<string>;
  /** Ends it as a crash does, and starts another. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

/** Fails where the API server has forbidden an installed operator something, by the logs of its pods. */
export async function assertInstalledUnforbidden(namespace: string, selector: string): Promise<void> {
  assertNoneForbidden(forbiddenIn(await kubectl(["logs", "-n", namespace, "-l", selector, "--tail=-1"])));
}

let image: Promise<string> | undefined;

/** The name of the operator's image, built and published once: by `make test` for all processes, otherwise by this one. */
export function publishedImage(): Promise<string> {
  const given = process.env["TEST_OPERATOR_IMAGE"];
  image ??= given ? Promise.resolve(given) : publishOperatorImage();
  return image;
}

export interface OperatorSettings {
  readonly flags?: readonly string[];
  /** Variables of the operator's own, as a chart's `extraEnv` sets them. */
  readonly env?: Readonly<Record<string, string>>;
  /** Requests that a test has the API server answer with 403; any other one fails the file. */
  readonly forbidden?: readonly RegExp[];
}

/**
 * Serves the given namespaces only, with the rights that an installation gives it: what else the cluster holds stays untouched.
 * To stop it fails where the API server has forbidden it something.
 */
export async function startOperator(
  namespaces: readonly string[],
  { flags = [], env = {}, forbidden = [] }: OperatorSettings = {},
): Promise<Operator> {
  await installApi();
  const agentImage = await publishedImage();
  const id = crypto.randomUUID();
  const logFile = join(runFolder, `operator-${id}.log`);
  const ownKubeconfig = join(runFolder, `kubeconfig-${id}`);
  const account = await operatorAccount({ admin: await clusterCredentials(), home: operatorNamespace });
  await Bun.write(ownKubeconfig, account.kubeconfig);
  const start = (): ChildProcess =>
    spawnChild({
      command: [
        process.execPath,
        join(repositoryRoot, "packages/operator/src/main.ts"),
        `--kubeconfig=${ownKubeconfig}`,
        `--agent-image=${agentImage}`,
        `--watch-namespaces=${namespaces.join(",")}`,
        "--probe-address=127.0.0.1:0",
        "--metrics-address=127.0.0.1:0",
        "--allow-http",
        `--allow-addresses=${network.machine}`,
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
      await operator.stop();
      await account.remove();
      assertNoneForbidden(forbiddenIn(await Bun.file(logFile).text()), forbidden);
    },
  };
}
