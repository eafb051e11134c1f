/** The operator on the cluster, as `kubectl apply -f deploy/quickstart/install.yaml` puts it there. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { givenKubeconfig, publishOperatorImage, repositoryRoot, step, UserError } from "@pko/cluster";

import { kubectl } from "./kubectl.ts";

const manifest = "deploy/quickstart/install.yaml";
const namespace = "pulumi-kubernetes-operator";

export async function installOperator(): Promise<void> {
  const image = await operatorImage();
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

async function operatorImage(): Promise<string> {
  if (givenKubeconfig === undefined) return await publishOperatorImage();
  const image = process.env["IMAGE"];
  if (image === undefined) {
    throw new UserError(["the cluster of CLUSTER_KUBECONFIG cannot pull from this machine: name an image with IMAGE="]);
  }
  return image;
}
