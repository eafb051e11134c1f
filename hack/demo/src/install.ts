/** Installs the operator like `kubectl apply -f deploy/quickstart/install.yaml`. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { deployableImage, replaceImage, repositoryRoot, step } from "@pko/cluster";

import { kubectl } from "./kubectl.ts";

const manifest = "deploy/quickstart/install.yaml";
const namespace = "pulumi-kubernetes-operator";

export async function installOperator(): Promise<void> {
  if (await isDeployed()) return console.log("using the operator that `make deploy` installed");
  const image = await deployableImage();
  await step(`installing the operator (kubectl apply -f ${manifest})`, async (progress) => {
    const released = await readFile(join(repositoryRoot, manifest), "utf8");
    await kubectl(["apply", "-f", "-"], replaceImage(released, image));
    progress.report("waiting for its pod");
    await kubectl(["rollout", "status", "deployment", "--namespace", namespace, "--timeout=120s"]);
  });
}

/** Whether the chart is installed: a second operator would only wait for its lease. */
async function isDeployed(): Promise<boolean> {
  const name = `${namespace}-controller-manager`;
  const found = await kubectl([
    "get",
    "deployment",
    name,
    "--namespace",
    namespace,
    "--ignore-not-found",
    "-o",
    "name",
  ]);
  return found.trim() !== "";
}
