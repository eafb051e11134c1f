/** The executables in the operator's image, for any architecture that it is offered for. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

import { repositoryRoot } from "./paths.ts";
import { run } from "./shell.ts";

/** What the operator's Containerfile is built from. */
export const imageContext = join(repositoryRoot, ".build/image");

/** As images name them, with the runtime's own names. */
const targets = { amd64: "bun-linux-x64", arm64: "bun-linux-arm64" } as const;

type Architecture = keyof typeof targets;
export const architectures = Object.keys(targets) as Architecture[];
export const ownArchitecture: Architecture = process.arch === "x64" ? "amd64" : "arm64";

/** The program that makes each executable. */
const builds = { operator: "packages/operator/build.ts", agent: "packages/agent/build.ts" } as const;

/** Returns their paths. The version is the one that the agent tells. */
export async function buildExecutables(architecture: Architecture, version?: string): Promise<string[]> {
  const folder = join(imageContext, "bin", architecture);
  await mkdir(folder, { recursive: true });
  // For this machine, the runtime that runs now is taken, and nothing is fetched.
  const target = architecture === ownArchitecture ? [] : [`--target=${targets[architecture]}`];
  const outputs: string[] = [];
  for (const [name, build] of Object.entries(builds)) {
    const output = join(folder, name);
    const told = name === "agent" && version !== undefined ? [`--version=${version}`] : [];
    await run([process.execPath, join(repositoryRoot, build), output, ...target, ...told]);
    outputs.push(output);
  }
  return outputs;
}
