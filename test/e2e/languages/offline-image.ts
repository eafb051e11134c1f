/** An image with packages that were collected on this machine, so that programs run offline in it. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { cacheRoot, imagesFingerprint, isPublished, layout, publishImage, stateRoot, step } from "@pko/cluster";

interface OfflineImage {
  /** The start of its tag. */
  readonly label: string;
  readonly containerfile: string;
  /** Files that determine the packages. */
  readonly inputs: readonly string[];
  /** What else determines them. */
  readonly version: string;
  /** What is collected. */
  readonly what: string;
  readonly fill: (folder: string) => Promise<void>;
}

/** Returns the name of the image. Its packages are collected once for each content of its inputs. */
export async function publishOfflineImage(image: OfflineImage): Promise<string> {
  const { label, containerfile, inputs, version, what, fill } = image;
  const hash = createHash("sha256").update(imagesFingerprint() + version);
  for (const file of [containerfile, ...inputs]) hash.update(readFileSync(file));
  const tag = hash.digest("hex").slice(0, 12);
  const name = `docker.io/pulumi/pulumi:${label}-${tag}`;
  const { images } = layout(stateRoot);
  if (isPublished(name, images)) return name;
  const context = join(cacheRoot, `${label}-${tag}`);
  if (!existsSync(context)) await step(`collecting ${what}`, () => collect(context, fill));
  await step(`publishing ${name}`, () => publishImage({ name, containerfile, context }, images));
  return name;
}

async function collect(context: string, fill: OfflineImage["fill"]): Promise<void> {
  const draft = `${context}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  try {
    await fill(draft);
    renameSync(draft, context);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
