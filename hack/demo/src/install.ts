/** Installs the operator like `kubectl apply -f deploy/quickstart/install.yaml`. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import {
  attempt,
  deployableImage,
  kubectlCommand,
  manifestDeployment,
  operatorNamespace as namespace,
  replaceImage,
  repositoryRoot,
  step,
  UserError,
} from "@pko/cluster";
import { builtin, type Client } from "@pko/kube";

import { hashAnnotation, installedOperator } from "./installed-operator.ts";
import { kubectl } from "./kubectl.ts";

const manifest = "deploy/quickstart/install.yaml";

export async function installOperator(client: Client): Promise<void> {
  const { items: deployments } = await client.list(builtin.deployments, { namespace });
  const installed = installedOperator(deployments);
  if (installed.kind === "foreign") throw new UserError([installed.problem]);
  if (installed.kind === "used") return console.log(installed.explanation);
  const released = await readFile(join(repositoryRoot, manifest), "utf8");
  const text = replaceImage(released, await deployableImage());
  // To apply the same again would take seconds.
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 16);
  const current = deployments.find(({ metadata }) => metadata.annotations?.[hashAnnotation] === hash);
  if (current?.status?.availableReplicas) {
    return console.log("using the operator of an earlier demo: it is unchanged");
  }
  await step(`installing the operator (kubectl apply -f ${manifest})`, async (progress) => {
    await kubectl(["apply", "-f", "-"], text);
    progress.report("waiting for its pod");
    await untilRunning();
    const note = `${hashAnnotation}=${hash}`;
    await kubectl(["annotate", "deployment", manifestDeployment, "-n", namespace, "--overwrite", note]);
  });
}

/** Of each container that does not run: why, for example that its image cannot be pulled. */
const waitingContainers = 'jsonpath={range ..state.waiting}{.reason}: {.message}{"\\n"}{end}';

async function untilRunning(): Promise<void> {
  const status = ["rollout", "status", "deployment", "--namespace", namespace, "--timeout=120s"];
  const { code, stderr } = await attempt(kubectlCommand(...status));
  if (code === 0) return;
  const reasons = (await kubectl(["get", "pods", "--namespace", namespace, "-o", waitingContainers])).trim();
  throw new UserError([
    `the operator's pod does not become ready: ${reasons || stderr.trim()}`,
    `kubectl describe pods --namespace ${namespace} shows more`,
  ]);
}
