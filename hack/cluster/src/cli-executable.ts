/** The executables of kubectl-pulumi: for this machine, and for a release. */
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";

import { repositoryRoot } from "./paths.ts";
import { run } from "./shell.ts";

/** The names of Kubernetes and krew for a platform, and of Bun. */
export const platforms = [
  { os: "linux", arch: "amd64", target: "bun-linux-x64" },
  { os: "linux", arch: "arm64", target: "bun-linux-arm64" },
  { os: "darwin", arch: "amd64", target: "bun-darwin-x64" },
  { os: "darwin", arch: "arm64", target: "bun-darwin-arm64" },
] as const;

export type Platform = (typeof platforms)[number];

const buildFolder = join(repositoryRoot, ".build/cli");
const executable = "kubectl-pulumi";

/** Without a target, for this machine: the current runtime is used, and nothing is downloaded. Returns the path. */
export async function buildCli(output: string, target: readonly string[] = []): Promise<string> {
  await mkdir(dirname(output), { recursive: true });
  await run([process.execPath, join(repositoryRoot, "packages/cli/build.ts"), output, ...target]);
  return output;
}

/** Returns its path. */
export const buildOwnCli = async (): Promise<string> => await buildCli(join(buildFolder, executable));

export interface Archive {
  readonly platform: Platform;
  readonly path: string;
  readonly sha256: string;
}

export const archiveName = ({ os, arch }: Platform): string => `${executable}-${os}-${arch}.tar.gz`;

/** One archive for each platform, with the executable and the license, as krew expects them. */
export async function buildCliArchives(folder: string): Promise<Archive[]> {
  const archives: Archive[] = [];
  for (const platform of platforms) {
    const { os, arch, target } = platform;
    const isOwn = os === process.platform && arch === (process.arch === "x64" ? "amd64" : process.arch);
    const from = join(buildFolder, `${os}-${arch}`);
    await buildCli(join(from, executable), isOwn ? [] : [`--target=${target}`]);
    const path = join(folder, archiveName(platform));
    await run([
      "tar",
      "--create",
      "--gzip",
      "--file",
      path,
      "--directory",
      from,
      executable,
      "--directory",
      repositoryRoot,
      "LICENSE",
    ]);
    const sha256 = createHash("sha256")
      .update(await readFile(path))
      .digest("hex");
    archives.push({ platform, path, sha256 });
  }
  return archives;
}
