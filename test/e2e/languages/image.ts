/**
 * An image in which the Node.js and Python examples install their dependencies offline. The package managers of this machine
 * fill its caches, from the registries that they are configured for. The image also contains the `go` command.
 */
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { repositoryRoot, run } from "@pko/cluster";

import { publishOfflineImage } from "./offline-image.ts";

const examples = join(repositoryRoot, "examples/languages");
const lockfile = join(examples, "typescript/package-lock.json");
const requirements = join(examples, "python/requirements.txt");
/** The version in the workspace image. */
const pythonVersion = "3.11";

export const publishPackagesImage = async (): Promise<string> =>
  await publishOfflineImage({
    label: "packages",
    containerfile: join(repositoryRoot, "deploy/images/packages.Containerfile"),
    inputs: [lockfile, requirements],
    version: await run(["go", "env", "GOVERSION"]),
    what: "Node.js and Python packages",
    fill,
  });

async function fill(draft: string): Promise<void> {
  const go = (await run(["go", "env", "GOROOT"])).trim();
  cpSync(join(go, "bin/go"), join(draft, "go/bin/go"));
  await fillNpm(draft);
  await fillPython(draft);
}

async function fillNpm(draft: string): Promise<void> {
  const project = join(draft, "project");
  const cache = join(draft, "npm");
  mkdirSync(project);
  for (const name of ["package.json", "package-lock.json"]) cpSync(join(lockfile, "..", name), join(project, name));
  await run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", `--cache=${cache}`], { cwd: project });
  rmSync(project, { recursive: true });
  rmSync(join(cache, "_logs"), { recursive: true, force: true });
}

/** For the Python version of the image, not of this machine. Pulumi also updates the installer. */
async function fillPython(draft: string): Promise<void> {
  const machine = process.arch === "x64" ? "x86_64" : "aarch64";
  const platforms = ["2_17", "2_28"].map((libc) => `--platform=manylinux_${libc}_${machine}`);
  const target = ["--only-binary=:all:", `--python-version=${pythonVersion}`, "--implementation=cp", ...platforms];
  const wanted = ["--requirement", requirements, "pip", "setuptools", "wheel"];
  await run(["pip", "download", "--quiet", `--dest=${join(draft, "python")}`, ...target, ...wanted]);
}
