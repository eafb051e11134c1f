/**
 * What a person finds who runs a shell in the container: the working directory is the project's folder, the CLI has the
 * stack selected there, and `Pulumi.<stack>.yaml` is the stack's settings file. Runs depend on none of this, so nothing
 * here fails a preparation.
 */
import { createHash } from "node:crypto";
import { mkdir, realpath, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { errorMessage } from "@pko/rpc";
import type { Options } from "../options.ts";
import { isWritableFolder } from "../pulumi/dependencies.ts";
import type { Project } from "../pulumi/project.ts";
import { isInside, readIfThere, writeAtomically } from "../system/files.ts";
import { placeLink } from "../system/links.ts";
import type { Log } from "../system/log.ts";

/** Links the working directory to the project's folder, unless the project is in it already. */
export async function linkWorkspace(workspace: string, project: Project, log: Log): Promise<void> {
  try {
    const present = await realpath(workspace).catch(() => undefined);
    if (present === project.folder) return;
    const isUsedInPlace = present === workspace && isInside(workspace, project.folder);
    if (isUsedInPlace || (await placeLink(workspace, project.folder))) return;
    log.warn("working directory not linked: it has other content", { workspace, project: project.folder });
  } catch (error) {
    log.warn("working directory not linked", { workspace, error: errorMessage(error) });
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
  const home = env["PULUMI_HOME"] || join(env["HOME"] ?? "/", ".pulumi");
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

/**
 * The container's `PULUMI_HOME` is a fixed path: here it becomes a link to where the CLI's folder would be without it,
 * or to a folder on the volume where the home cannot be written to.
 */
export async function linkPulumiHome({ paths }: Options, env: NodeJS.ProcessEnv, log: Log): Promise<void> {
  if (env["PULUMI_HOME"] !== paths.pulumiHome) return;
  const own = join(env["HOME"] || "/", ".pulumi");
  try {
    await mkdir(own, { recursive: true }).catch(() => undefined);
    const target = (await isWritableFolder(own)) ? own : join(paths.state, "home", ".pulumi");
    await mkdir(target, { recursive: true });
    if (await placeLink(paths.pulumiHome, target)) return;
    log.warn("PULUMI_HOME not linked: it has other content", { path: paths.pulumiHome });
  } catch (error) {
    log.warn("PULUMI_HOME not linked", { path: paths.pulumiHome, error: errorMessage(error) });
    await rm(paths.pulumiHome, { force: true }).catch(() => undefined);
  }
}
