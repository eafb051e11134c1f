/** The executables in the operator's image, for each supported architecture. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

import { repositoryRoot } from "./paths.ts";
import { run } from "./shell.ts";

/** The build context of the operator's Containerfile. */
export const imageContext = join(repositoryRoot, ".build/image");

/** The architecture names of images and of Bun. */
const targets = { amd64: "bun-linux-x64", arm64: "bun-linux-arm64" } as const;

export type Architecture = keyof typeof targets;
export const architectures = Object.keys(targets) as Architecture[];
export const ownArchitecture: Architecture = process.arch === "x64" ? "amd64" : "arm64";

/** The script that builds each executable. */
const builds = { operator: "packages/operator/build.ts", agent: "packages/agent/build.ts" } as const;

/** Returns their paths. `version` is what the agent reports. */
export async function buildExecutables(architecture: Architecture, version?: string): Promise<string[]> {
  const folder = join(imageContext, "bin", architecture);
  await mkdir(folder, { recursive: true });
  // Where the current runtime fits, it is used and nothing is downloaded.
  const isOwn = process.platform === "linux" && architecture === ownArchitecture;
  const target = isOwn ? [] : [`--target=${targets[architecture]}`];
  const outputs: string[] = [];
  for (const [name, build] of Object.entries(builds)) {
    const output = join(folder, name);
    const versionFlag = name === "agent" && version !== undefined ? [`--version=${version}`] : [];
    await run([process.execPath, join(repositoryRoot, build), output, ...target, ...versionFlag]);
    outputs.push(output);
  }
  return outputs;
}
