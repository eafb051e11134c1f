/** The operator on the cluster, as `kubectl apply -f deploy/quickstart/install.yaml` puts it there. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { deployableImage, repositoryRoot, step } from "@pko/cluster";

import { kubectl } from "./kubectl.ts";

const manifest = "deploy/quickstart/install.yaml";
const namespace = "pulumi-kubernetes-operator";

export async function installOperator(): Promise<void> {
  if (await isDeployed()) return console.log("the operator that `make deploy` installed is used as it is");
  const image = await deployableImage();
  await step(`installing the operator (kubectl apply -f ${manifest})`, async (progress) => {
    const released = await readFile(join(repositoryRoot, manifest), "utf8");
    await kubectl(["apply", "-f", "-"], withImage(released, image));
    progress.say("waiting for its pod");
    await kubectl(["rollout", "status", "deployment", "--namespace", namespace, "--timeout=120s"]);
  });
}

/** The manifest as it is, but for the image: this clone's instead of the released one. */
export function withImage(text: string, image: string): string {
  return text.replaceAll(/docker\.io\/pulumi\/pulumi-kubernetes-operator:[\w.-]+/g, image);
}

/** By its chart: a second operator beside it would only wait for it to end. */
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
