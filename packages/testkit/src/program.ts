/** The programs of this repository as tests start them: in processes of their own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { repositoryRoot } from "@pko/cluster";

type ProgramName = "agent" | "cli" | "operator";

let folder: string | undefined;
const bundles = new Map<ProgramName, string>();

/**
 * The path of a program, bundled when a process needs it first. From its sources, each start would transpile hundreds of
 * files, which takes two thirds of the CPU that a start needs.
 */
export function programPath(name: ProgramName): string {
  const known = bundles.get(name);
  if (known !== undefined) return known;
  folder ??= mkdtempSync(join(tmpdir(), "pko-programs-"));
  const path = join(folder, `${name}.js`);
  const source = join(repositoryRoot, `packages/${name}/src/main.ts`);
  // Synchronous, so that constructors can call it.
  const { success, stderr } = Bun.spawnSync([process.execPath, "build", "--target=bun", source, `--outfile=${path}`]);
  if (!success) throw new Error(`${name} cannot be bundled: ${stderr.toString()}`);
  bundles.set(name, path);
  return path;
}

/** Called by preload.ts after the last test. */
export function removePrograms(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  folder = undefined;
  bundles.clear();
}
