/** The programs of this repository as tests start them: in processes of their own. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { repositoryRoot } from "@pko/cluster";

const sources = {
  agent: "packages/agent/src/main.ts",
  cli: "packages/cli/src/main.ts",
  operator: "packages/operator/src/main.ts",
  "leader-replica": "test/integration/kube/leader-replica.ts",
} as const;

type ProgramName = keyof typeof sources;

/** The folder of this process, if there is none for all processes of the run. */
let ownFolder: string | undefined;

function bundleFolder(): string {
  const shared = process.env["TEST_PROGRAMS"];
  if (!shared) return (ownFolder ??= mkdtempSync(join(tmpdir(), "pko-programs-")));
  mkdirSync(shared, { recursive: true });
  return shared;
}

/**
 * The path of a program, bundled when a process needs it first: with `make test`, the first process of the run. From its
 * sources, each start would transpile hundreds of files, which takes two thirds of the CPU that a start needs.
 */
export function programPath(name: ProgramName): string {
  const path = join(bundleFolder(), `${name}.js`);
  if (!existsSync(path)) bundle(name, path);
  return path;
}

/** Synchronous, so that constructors can call it. */
function bundle(name: ProgramName, path: string): void {
  const source = join(repositoryRoot, sources[name]);
  // Another process may be writing the same file.
  const draft = `${path}.${process.pid}.js`;
  const { success, stderr } = Bun.spawnSync([process.execPath, "build", "--target=bun", source, `--outfile=${draft}`]);
  if (!success) throw new Error(`${name} cannot be bundled: ${stderr.toString()}`);
  renameSync(draft, path);
}

/** Called by preload.ts after the last test. */
export function removePrograms(): void {
  if (ownFolder !== undefined) rmSync(ownFolder, { recursive: true, force: true });
  ownFolder = undefined;
}
