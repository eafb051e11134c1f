/** Installs the operator like `kubectl apply -f deploy/quickstart/install.yaml`. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { deployableImage, replaceImage, repositoryRoot, step } from "@pko/cluster";
import { builtin, type Client } from "@pko/kube";

import { kubectl } from "./kubectl.ts";

const manifest = "deploy/quickstart/install.yaml";
const namespace = "pulumi-kubernetes-operator";
/** The names of the Deployment in the manifest, and in the chart. */
const ownName = "controller-manager";
const chartName = `${namespace}-${ownName}`;
/** A hash of what was applied: to apply the same again would take seconds. */
const hashAnnotation = "pulumi.com/demo-manifest";

export async function installOperator(client: Client): Promise<void> {
  const { items: deployments } = await client.list(builtin.deployments, { namespace });
  // A second operator would only wait for its lease.
  if (deployments.some(({ metadata }) => metadata.name === chartName)) {
    return console.log("using the operator that `make deploy` installed");
  }
  const released = await readFile(join(repositoryRoot, manifest), "utf8");
  const text = replaceImage(released, await deployableImage());
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 16);
  const current = deployments.find(({ metadata }) => metadata.annotations?.[hashAnnotation] === hash);
  if (current?.status?.availableReplicas) {
    return console.log("using the operator of an earlier demo: it is unchanged");
  }
  await step(`installing the operator (kubectl apply -f ${manifest})`, async (progress) => {
    await kubectl(["apply", "-f", "-"], text);
    progress.report("waiting for its pod");
    await kubectl(["rollout", "status", "deployment", "--namespace", namespace, "--timeout=120s"]);
    await kubectl(["annotate", "deployment", ownName, "-n", namespace, "--overwrite", `${hashAnnotation}=${hash}`]);
  });
}
