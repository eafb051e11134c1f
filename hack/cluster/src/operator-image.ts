/** Builds the image of the operator and agent from this clone and publishes it to the running cluster. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";

import { kubectlCommand } from "./clients.ts";
import { architectures, buildExecutables, imageContext, ownArchitecture, type Architecture } from "./executables.ts";
import { givenKubeconfig } from "./given-cluster.ts";
import { buildCommand, planDelivery, type Delivery } from "./image-delivery.ts";
import { baseImage, removeOutdatedImages, isPublished, publishImage } from "./images.ts";
import { layout } from "./layout.ts";
import { repositoryRoot, stateRoot } from "./paths.ts";
import { step } from "./progress.ts";
import { attempt, isOnPath, run } from "./shell.ts";
import { UserError } from "./user-error.ts";

const repository = "docker.io/pulumi/pulumi-kubernetes-operator";
const containerfile = join(repositoryRoot, "deploy/images/operator.Containerfile");

/**
 * Returns the image's name. By default its tag is a hash of its contents, so a changed program always gets a new image.
 */
export async function publishOperatorImage(tag?: string): Promise<string> {
  const hash = await buildContext(ownArchitecture);
  const image = `${repository}:${tag ?? hash}`;
  const { images } = layout(stateRoot);
  if (tag === undefined && isPublished(image, images)) return image;
  const args = [`DEBIAN=${baseImage}`];
  const built = { name: image, containerfile, context: imageContext, args };
  await step(`publishing ${image}`, () => publishImage(built, images));
  await removeOutdatedImages(repository);
  return image;
}

/** Compiles what the image contains, which needs no cluster yet. For the user's own cluster, its architecture is not known. */
export async function prepareOperatorImage(): Promise<void> {
  if (givenKubeconfig === undefined) await buildExecutables(ownArchitecture);
}

/** Builds what the image contains. Returns a hash of it. */
async function buildContext(architecture: Architecture): Promise<string> {
  const hash = createHash("sha256").update(await readFile(containerfile));
  for (const path of await buildExecutables(architecture)) {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  }
  return hash.digest("hex").slice(0, 12);
}

/** The image to install: this clone's, or for the user's own cluster the one in IMAGE if that is set. */
export async function deployableImage(): Promise<string> {
  if (givenKubeconfig === undefined) return await publishOperatorImage();
  return process.env["IMAGE"] || (await deliverImage());
}

/** Builds the image and makes it available to the user's own cluster. */
async function deliverImage(): Promise<string> {
  // Docker's client may be installed while its server is not running.
  const hasDocker = isOnPath("docker") && (await attempt(["docker", "version"])).code === 0;
  const delivery = planDelivery({
    context: (await run(kubectlCommand("config", "current-context"))).trim(),
    architectures: (await run(kubectlCommand("get", "nodes", "-o", "jsonpath={..architecture}"))).split(" "),
    hasProgram: (name) => (name === "docker" ? hasDocker : isOnPath(name)),
    ...(process.env["REGISTRY"] && { registry: process.env["REGISTRY"] }),
  });
  if (typeof delivery === "string") throw new UserError([delivery]);
  console.error(`the operator's image is ${delivery.explanation}`);
  return await step("building the operator's image, and delivering it to the cluster", () => deliver(delivery));
}

async function deliver(delivery: Delivery): Promise<string> {
  const architecture = architectures.find((known) => known === delivery.architecture);
  if (architecture === undefined) {
    throw new UserError([
      `the nodes are ${delivery.architecture}, but the operator supports ${architectures.join(", ")}`,
    ]);
  }
  const image = `${delivery.repository}:${await buildContext(architecture)}`;
  const archive = join(imageContext, "..", "operator-image.tar");
  await rm(archive, { force: true });
  await run(buildCommand(delivery, { image, containerfile, context: imageContext }));
  for (const command of delivery.deliver(image, archive)) await run(command);
  await rm(archive, { force: true });
  return image;
}

/** The quickstart manifest with another image than the released one. */
export function replaceImage(text: string, image: string): string {
  return text.replaceAll(/docker\.io\/pulumi\/pulumi-kubernetes-operator:[\w.-]+/g, image);
}
