/**
 * What a person finds who runs a shell in the container: the working directory is the project's folder, the CLI has the
 * stack selected there, and `Pulumi.<stack>.yaml` is the stack's settings file. Runs depend on none of this, so nothing
 * here fails a preparation.
 */
import { createHash } from "node:crypto";
import { mkdir, realpath, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { errorMessage } from "@pko/rpc";
import type { Project } from "../pulumi/project.ts";
import { pulumiHome } from "../pulumi/writable-folders.ts";
import { hasCode, isDirectory, isInside, readIfThere, writeAtomically } from "../system/files.ts";
import { linkTarget, placeLink, replaceLinkByFolder } from "../system/links.ts";
import type { Log } from "../system/log.ts";

/** Links the working directory to the project's folder, unless the project is in it already. */
export async function linkWorkspace(workspace: string, folder: string, log: Log): Promise<void> {
  try {
    const present = await realpath(workspace).catch(() => undefined);
    if (present === folder) return;
    const isUsedInPlace = present === workspace && isInside(workspace, folder);
    if (isUsedInPlace || (await placeLink(workspace, folder))) return;
    log.warn("working directory not linked: it has other content", { workspace, project: folder });
  } catch (error) {
    log.warn("working directory not linked", { workspace, error: errorMessage(error) });
  }
}

/**
 * Makes the working directory an empty folder before the checkout that it is a link to is replaced. A container whose
 * working directory is a link to nothing does not start, so no crash may leave one.
 */
export async function unlinkWorkspace(workspace: string, log: Log): Promise<void> {
  try {
    await replaceLinkByFolder(workspace);
  } catch (error) {
    log.warn("working directory not unlinked", { workspace, error: errorMessage(error) });
  }
}

/** Moves a checkout that an earlier agent made in the working directory out of it; `removeLeftovers` removes it. */
export async function retireCheckout(workspace: string, log: Log): Promise<void> {
  if ((await linkTarget(workspace)) !== undefined || !(await isDirectory(workspace))) return;
  const old = `${workspace}.old`;
  try {
    await rm(old, { recursive: true, force: true });
    await rename(workspace, old);
    await mkdir(workspace);
  } catch (error) {
    log.warn("checkout of an earlier agent not removed", { workspace, error: errorMessage(error) });
  }
}

/** After a restart of the agent or the pod: the link leads to what is prepared, or there is none. */
export async function recoverWorkspaceLink(workspace: string, folder: string | undefined, log: Log): Promise<void> {
  if (folder !== undefined && (await isDirectory(folder))) await linkWorkspace(workspace, folder, log);
  else if (!(await isDirectory(workspace))) await unlinkWorkspace(workspace, log);
}

/**
 * For the bootstrap container: the folder in which the workspace's container starts. A link on a claim may lead into an
 * image that the pod does not have any more, which cannot be seen from here: the agent makes it again.
 */
export async function makeWorkspaceFolder(workspace: string, log: Log): Promise<void> {
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
  /** The project file of the agent's own, beside which the CLI has selected the stack. */
  readonly selectedBeside: string;
  readonly workspace: string;
  readonly log: Log;
}

/**
 * The CLI remembers the selected stack in a file whose name has the hash of the project file's path. It has written one
 * for the agent's own project file, which is repeated for the paths under which a shell sees the project.
 */
export async function shareSelection({ env, project, selectedBeside, workspace, log }: Selection): Promise<void> {
  const home = pulumiHome(env);
  const fileFor = (projectFile: string): string =>
    join(home, "workspaces", `${project.name}-${sha1(projectFile)}-workspace.json`);
  try {
    const selection = await readIfThere(fileFor(selectedBeside));
    if (selection === undefined) return;
    for (const projectFile of [project.file, join(workspace, basename(project.file))]) {
      const file = fileFor(projectFile);
      if ((await readIfThere(file)) !== selection) await writeAtomically(file, selection);
    }
  } catch (error) {
    log.warn("stack not selected for shells", { error: errorMessage(error) });
  }
}

const sha1 = (text: string): string => createHash("sha1").update(text).digest("hex");
