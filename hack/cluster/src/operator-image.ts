/** Builds the image of the operator and agent from this clone and publishes it to the running cluster. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { givenKubeconfig, UserError } from "./cluster.ts";
import { buildExecutables, imageContext, ownArchitecture } from "./executables.ts";
import { removeOutdatedImages, isPublished, publishImage } from "./images.ts";
import { layout } from "./layout.ts";
import { repositoryRoot, stateRoot } from "./paths.ts";
import { step } from "./progress.ts";

const repository = "docker.io/pulumi/pulumi-kubernetes-operator";

/**
 * Returns the image's name. By default its tag is a hash of its contents, so a changed program always gets a new image.
 */
export async function publishOperatorImage(tag?: string): Promise<string> {
  const containerfile = join(repositoryRoot, "deploy/images/operator.Containerfile");
  const hash = createHash("sha256").update(await readFile(containerfile));
  for (const path of await buildExecutables(ownArchitecture)) {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  }
  const image = `${repository}:${tag ?? hash.digest("hex").slice(0, 12)}`;
  const { images } = layout(stateRoot);
  if (tag === undefined && isPublished(image, images)) return image;
  await step(`publishing ${image}`, () => publishImage({ name: image, containerfile, context: imageContext }, images));
  await removeOutdatedImages(repository);
  return image;
}

/** The image to install: this clone's, or the one in IMAGE for the user's own cluster. */
export async function deployableImage(): Promise<string> {
  if (givenKubeconfig === undefined) return await publishOperatorImage();
  const image = process.env["IMAGE"];
  if (!image) {
    throw new UserError([
      "the cluster of CLUSTER_KUBECONFIG cannot pull from this machine: set IMAGE to an image that it can pull",
    ]);
  }
  return image;
}

/** The quickstart manifest with another image than the released one. */
export function replaceImage(text: string, image: string): string {
  return text.replaceAll(/docker\.io\/pulumi\/pulumi-kubernetes-operator:[\w.-]+/g, image);
}
