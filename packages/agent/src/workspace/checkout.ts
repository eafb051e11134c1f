/**
 * Putting a tree into the workspace's folder: written beside it, looked at, then swapped in by two renames. Until the
 * swap the old tree is untouched; after a crash between the renames the state says that nothing is checked out.
 */
import { mkdir, realpath, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { done, failed, type Outcome } from "../outcome.ts";
import { quoteName } from "../system/clean-text.ts";
import { carryOver } from "../pulumi/dependencies.ts";
import { loadProject } from "../pulumi/project.ts";
import type { Tree } from "../sources/source.ts";
import { isDirectory, resolveInside } from "../system/files.ts";

interface CheckoutOptions {
  readonly workspace: string;
  /** The project's folder within the tree. */
  readonly dir: string;
  /** Called once the new tree is known to be good, before anything of the old one is touched. */
  readonly beforeSwap: () => Promise<void>;
}

interface CheckedOut {
  /** What was moved over from the old tree, relative to the new one. */
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

/** Where the project is, once it is known to be inside the tree. */
async function writeAndCheck(tree: Tree, folder: string, dir: string): Promise<Outcome<string>> {
  const written = await tree.write(folder);
  return written.ok ? await projectFolder(folder, dir) : written;
}

export async function projectFolder(root: string, dir: string): Promise<Outcome<string>> {
  const shown = quoteName(dir);
  const resolved = await resolveInside(root, dir.replace(/^(\.?\/)+/, "") || ".");
  if (!resolved.ok && resolved.problem === "outside") {
    return failed("sourceInvalid", `the project's folder ${shown} leads out of the source`);
  }
  if (!resolved.ok || !(await isDirectory(resolved.path))) {
    return failed("sourceNotFound", `the source has no folder ${shown}`);
  }
  return done(resolved.path);
}

interface CheckoutPaths {
  readonly source: string;
  readonly workspace: string;
}

/** What a crash may have left, or an earlier agent. */
export async function removeLeftovers({ source, workspace }: CheckoutPaths): Promise<void> {
  for (const path of [`${source}.next`, `${source}.old`, `${workspace}.old`]) {
    await rm(path, { recursive: true, force: true });
  }
}
