/** The executables in the operator's image, for each supported architecture. */
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { repositoryRoot } from "./paths.ts";
import { run } from "./shell.ts";
import { hashSources } from "./sources.ts";

/** The build context of the operator's Containerfile. */
export const imageContext = join(repositoryRoot, ".build/image");

/** The architecture names of images and of Bun. */
const targets = { amd64: "bun-linux-x64", arm64: "bun-linux-arm64" } as const;

export type Architecture = keyof typeof targets;
export const architectures = Object.keys(targets) as Architecture[];
export const ownArchitecture: Architecture = process.arch === "x64" ? "amd64" : "arm64";

/** The script that builds each executable. */
const builds = { operator: "packages/operator/build.ts", agent: "packages/agent/build.ts" } as const;

/** Returns their paths. `version` is what the agent reports. Those of the same sources are not built again. */
export async function buildExecutables(architecture: Architecture, version?: string): Promise<string[]> {
  const folder = join(imageContext, "bin", architecture);
  const outputs = Object.keys(builds).map((name) => join(folder, name));
  const record = join(folder, "sources");
  const sources = await hashSources(repositoryRoot, version);
  if (outputs.every((path) => existsSync(path)) && (await readRecord(record)) === sources) return outputs;
  await mkdir(folder, { recursive: true });
  await rm(record, { force: true });
  // Where the current runtime fits, it is used and nothing is downloaded.
  const isOwn = process.platform === "linux" && architecture === ownArchitecture;
  const target = isOwn ? [] : [`--target=${targets[architecture]}`];
  await Promise.all(
    Object.entries(builds).map(async ([name, build]) => {
      const versionFlag = name === "agent" && version !== undefined ? [`--version=${version}`] : [];
      await run([process.execPath, join(repositoryRoot, build), join(folder, name), ...target, ...versionFlag]);
    }),
  );
  await writeFile(record, sources);
  return outputs;
}

async function readRecord(path: string): Promise<string | undefined> {
  return await readFile(path, "utf8").catch(() => undefined);
}
