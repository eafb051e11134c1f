/**
 * Replaces the workspace's checkout: writes the new tree beside it, checks it, then swaps it in with two renames. Until
 * the swap the old tree is unchanged; after a crash between the renames the state records no checkout.
 */
import { mkdir, realpath, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { done, failed, type Outcome } from "../outcome.ts";
import { quoteName } from "../system/clean-text.ts";
import { carryOver } from "../pulumi/project/dependencies.ts";
import { loadProject } from "../pulumi/project/project.ts";
import type { Tree } from "../sources/source.ts";
import { isDirectory, resolveInside } from "../system/files.ts";

interface CheckoutOptions {
  readonly workspace: string;
  /** The project's folder within the tree. */
  readonly dir: string;
  /** Called after the new tree was checked and before the old one is changed. */
  readonly beforeSwap: () => Promise<void>;
}

interface CheckedOut {
  /** Folders that were moved from the old tree, relative to the new one. */
  readonly carried: readonly string[];
}

export async function checkOut(tree: Tree, options: CheckoutOptions): Promise<Outcome<CheckedOut>> {
  const { workspace } = options;
  const [next, old] = [`${workspace}.next`, `${workspace}.old`];
  await mkdir(dirname(workspace), { recursive: true });
  await rm(next, { recursive: true, force: true });
  await mkdir(next);
  const written = await writeAndCheck(tree, next, options.dir);
  if (!written.ok) {
    await rm(next, { recursive: true, force: true });
    return written;
  }
  await options.beforeSwap();
  const carried = await swap({ workspace, next, old }, written.value);
  await tree.settle();
  await rm(old, { recursive: true, force: true });
  return done({ carried });
}

interface Folders {
  readonly workspace: string;
  readonly next: string;
  readonly old: string;
}

async function swap({ workspace, next, old }: Folders, projectFolder: string): Promise<readonly string[]> {
  await rm(old, { recursive: true, force: true });
  if (!(await isDirectory(workspace))) {
    await rename(next, workspace);
    return [];
  }
  const root = await realpath(next);
  const project = await loadProject(projectFolder, root);
  const carried = project.ok ? await carryOver(project.value, workspace, root) : [];
  await rename(workspace, old);
  await rename(next, workspace);
  return carried;
}

/** Returns the project's folder, which is inside the tree. */
async function writeAndCheck(tree: Tree, folder: string, dir: string): Promise<Outcome<string>> {
  const written = await tree.write(folder);
  return written.ok ? await projectFolder(folder, dir) : written;
}

export async function projectFolder(root: string, dir: string): Promise<Outcome<string>> {
  const name = quoteName(dir);
  const resolved = await resolveInside(root, dir.replace(/^(\.?\/)+/, "") || ".");
  if (!resolved.ok && resolved.problem === "outside") {
    return failed("sourceInvalid", `the project's folder ${name} points outside the source; use a folder within it`);
  }
  if (!resolved.ok || !(await isDirectory(resolved.path))) {
    return failed("sourceNotFound", `the source has no folder ${name}; check the project's folder in the spec`);
  }
  return done(resolved.path);
}

interface CheckoutPaths {
  readonly source: string;
  readonly workspace: string;
}

/** Deletes what a crash or an earlier agent version may have left behind. */
export async function removeLeftovers({ source, workspace }: CheckoutPaths): Promise<void> {
  for (const path of [`${source}.next`, `${source}.old`, `${workspace}.old`]) {
    await rm(path, { recursive: true, force: true });
  }
}
