/** Builds the release files other than the image and the chart, so that they can be checked before a release. */
import { cp, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { buildCliArchives } from "./cli-executable.ts";
import { architectures, buildExecutables } from "./executables.ts";
import { krewManifest } from "./krew.ts";
import { repositoryRoot } from "./paths.ts";
import { step } from "./progress.ts";
import { run } from "./shell.ts";

const folder = join(repositoryRoot, ".build/release");

export async function makeReleaseFiles(): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const version = await chartVersion();
  for (const architecture of architectures) {
    const paths = await step(`building ${version} for ${architecture}`, () => buildExecutables(architecture, version));
    for (const path of paths) console.log(`  ${path} ${await megabytes(path)}`);
  }
  const archives = await step(`building kubectl-pulumi ${version}`, () => buildCliArchives(folder));
  for (const { path } of archives) console.log(`  ${path} ${await megabytes(path)}`);
  await writeFile(join(folder, "krew-pulumi.yaml"), await krewManifest(archives));
  await cp(join(repositoryRoot, "deploy/quickstart/install.yaml"), join(folder, "install.yaml"));
  await writeFile(join(folder, "sbom.cdx.json"), await billOfMaterials());
  console.log(`  ${folder} install.yaml, sbom.cdx.json`);
}

/** Everything has the version of the chart. */
async function chartVersion(): Promise<string> {
  const text = await readFile(join(repositoryRoot, "charts/pulumi-kubernetes-operator/Chart.yaml"), "utf8");
  const [, version] = /^version: (.+)$/m.exec(text) ?? [];
  if (version === undefined) throw new Error("the chart has no version");
  return version;
}

async function megabytes(path: string): Promise<string> {
  return `${((await stat(path)).size / 1e6).toFixed(1)} MB`;
}

interface Bill {
  readonly components: readonly object[];
}

/** The npm packages that are compiled into the executables, and the runtime. */
export async function billOfMaterials(): Promise<string> {
  const workspaces = ["operator", "agent", "cli"].flatMap((name) => ["--workspace", `packages/${name}`]);
  const command = ["npm", "sbom", "--omit=dev", "--sbom-format=cyclonedx", "--sbom-type=application", ...workspaces];
  const bill = JSON.parse(await run(command, { cwd: repositoryRoot })) as Bill;
  const version = await runtimeVersion();
  const runtime = {
    type: "platform",
    name: "bun",
    version,
    "bom-ref": `bun@${version}`,
    purl: `pkg:npm/bun@${version}`,
  };
  return `${JSON.stringify({ ...bill, components: [...bill.components, runtime] }, undefined, 2)}\n`;
}

async function runtimeVersion(): Promise<string> {
  const text = await readFile(join(repositoryRoot, "package.json"), "utf8");
  const { devDependencies } = JSON.parse(text) as { devDependencies: { bun: string } };
  return devDependencies.bun;
}
