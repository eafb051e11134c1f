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
  readDeployments,
  replaceImage,
  repositoryRoot,
  step,
  UserError,
} from "@pko/cluster";

import { hashAnnotation, operatorForDemo, unfinishedInstallation } from "./installed-operator.ts";
import { kubectl } from "./kubectl.ts";

export const manifest = "deploy/quickstart/install.yaml";

/** Returns whether the operator is that of a demo, and not the user's own. */
export async function installOperator(namespaceOfExample: string): Promise<boolean> {
  const deployments = await readDeployments();
  const operator = operatorForDemo(deployments, namespaceOfExample);
  if (operator.kind === "unusable") throw new UserError([operator.problem]);
  if (operator.kind === "used") {
    console.log(operator.explanation);
    return false;
  }
  const released = await readFile(join(repositoryRoot, manifest), "utf8");
  const text = replaceImage(released, await deployableImage());
  // To apply the same again would take seconds.
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 16);
  const current = deployments.find(({ metadata }) => metadata.annotations?.[hashAnnotation] === hash);
  if (current?.status?.availableReplicas) console.log("using the operator of an earlier demo: it is unchanged");
  else await applyManifest(text, hash);
  return true;
}

async function applyManifest(text: string, hash: string): Promise<void> {
  await step(`installing the operator (kubectl apply -f ${manifest})`, async (progress) => {
    await kubectl(["apply", "-f", "-"], text);
    // The next demo replaces it, even if this one is interrupted.
    await annotate(unfinishedInstallation);
    progress.report("waiting for its pod");
    await untilRunning();
    await annotate(hash);
  });
}

async function annotate(value: string): Promise<void> {
  const annotation = `${hashAnnotation}=${value}`;
  await kubectl(["annotate", "deployment", manifestDeployment, "-n", namespace, "--overwrite", annotation]);
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
