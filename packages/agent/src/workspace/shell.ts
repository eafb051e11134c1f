/**
 * Prepares the container for a user's shell: the working directory is the project's folder, the CLI has the stack selected
 * there, and `Pulumi.<stack>.yaml` is the stack's settings file. Runs do not need this, so a failure here never fails a
 * preparation.
 */
import { createHash } from "node:crypto";
import { mkdir, realpath, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Project } from "../pulumi/project/project.ts";
import { pulumiHome } from "../pulumi/project/writable-folders.ts";
import { hasCode, isDirectory, isInside, readIfExists, writeAtomically } from "../system/files.ts";
import { linkTarget, placeLink, replaceLinkWithFolder } from "../system/links.ts";
import type { Log } from "../system/log.ts";

/** Links the working directory to the project's folder, unless the project is already in it. */
export async function linkWorkspace(workspace: string, folder: string, log: Log): Promise<void> {
  try {
    const present = await realpath(workspace).catch(() => undefined);
    if (present === folder) return;
    const isUsedInPlace = present === workspace && isInside(workspace, folder);
    if (isUsedInPlace || (await placeLink(workspace, folder))) return;
    log.warn("cannot link the working directory, because it is not empty", { folder: workspace, project: folder });
  } catch (error) {
    log.warn("cannot link the working directory", { folder: workspace, error });
  }
}

/**
 * Replaces the link with an empty folder before its target, the checkout, is replaced. A container does not start if its
 * working directory is a dangling link, so a crash must not leave one.
 */
export async function unlinkWorkspace(workspace: string, log: Log): Promise<void> {
  try {
    await replaceLinkWithFolder(workspace);
  } catch (error) {
    log.warn("cannot unlink the working directory", { folder: workspace, error });
  }
}

/** Moves a checkout of an earlier agent version out of the working directory; `removeLeftovers` deletes it. */
export async function moveOldCheckout(workspace: string, log: Log): Promise<void> {
  if ((await linkTarget(workspace)) !== undefined || !(await isDirectory(workspace))) return;
  const old = `${workspace}.old`;
  try {
    await rm(old, { recursive: true, force: true });
    await rename(workspace, old);
    await mkdir(workspace);
  } catch (error) {
    log.warn("cannot remove the checkout of an earlier agent version", { folder: workspace, error });
  }
}

/** After a restart of the agent or the pod: links to the prepared project, or removes a dangling link. */
export async function recoverWorkspaceLink(workspace: string, folder: string | undefined, log: Log): Promise<void> {
  if (folder !== undefined && (await isDirectory(folder))) await linkWorkspace(workspace, folder, log);
  else if (!(await isDirectory(workspace))) await unlinkWorkspace(workspace, log);
}

/**
 * For the bootstrap container: creates the folder in which the workspace's container starts. A link on a persistent volume
 * may point into an image that the pod no longer uses, which this container cannot check: the agent links it again.
 */
export async function createWorkspaceFolder(workspace: string, log: Log): Promise<void> {
  await unlinkWorkspace(workspace, log);
  try {
    await mkdir(workspace);
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
}

interface Selection {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly project: Project;
  /** The agent's copy of the project file, for which the CLI selected the stack. */
  readonly agentProjectFile: string;
  readonly workspace: string;
  readonly log: Log;
}

/**
 * The CLI stores the selected stack in a file whose name contains a hash of the project file's path. This copies the file
 * for the agent's project file to the names for the paths that a shell uses.
 */
export async function shareSelection({ env, project, agentProjectFile, workspace, log }: Selection): Promise<void> {
  const home = pulumiHome(env);
  const fileFor = (projectFile: string): string =>
    join(home, "workspaces", `${project.name}-${sha1(projectFile)}-workspace.json`);
  try {
    const selection = await readIfExists(fileFor(agentProjectFile));
    if (selection === undefined) return;
    for (const projectFile of [project.file, join(workspace, basename(project.file))]) {
      const file = fileFor(projectFile);
      if ((await readIfExists(file)) !== selection) await writeAtomically(file, selection);
    }
  } catch (error) {
    log.warn("cannot select the stack for shells", { error });
  }
}

const sha1 = (text: string): string => createHash("sha1").update(text).digest("hex");
