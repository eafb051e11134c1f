/** The folders that the CLI and programs write to: those of the image, or folders on the volume if those are read-only. */
import { accessSync, constants, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "@pko/git";
import { hasCode } from "../../system/files.ts";

/** Where the CLI stores plugins, credentials and the selected stacks. */
export function pulumiHome(env: Environment): string {
  return env["PULUMI_HOME"] || join(env["HOME"] || "/", ".pulumi");
}

/** Writable folders stay unchanged, because shells in the container use the same variables. */
export function withWritableFolders(env: Record<string, string>, state: string): Record<string, string> {
  const result = { ...env };
  if (!isPulumiHomeWritable(env)) result["PULUMI_HOME"] = ownPulumiHome(pulumiHome(env), state);
  if (!isWritable(env["HOME"])) result["HOME"] = ensureFolder(join(state, "home"));
  if (!isWritable(env["TMPDIR"] ?? "/tmp")) result["TMPDIR"] = ensureFolder(join(state, "tmp"));
  return result;
}

export function ensureFolder(folder: string): string {
  mkdirSync(folder, { recursive: true });
  return folder;
}

function isPulumiHomeWritable(env: Environment): boolean {
  // A missing home is always replaced, even if the agent could create it.
  if (!env["PULUMI_HOME"] && !isWritable(env["HOME"])) return false;
  try {
    return isWritable(ensureFolder(pulumiHome(env)));
  } catch {
    return false;
  }
}

/** A folder on the volume with the image's plugins, because a cluster without internet access has no others. */
function ownPulumiHome(home: string, state: string): string {
  const own = ensureFolder(join(state, "home", ".pulumi"));
  const plugins = join(home, "plugins");
  try {
    if (existsSync(plugins)) symlinkSync(plugins, join(own, "plugins"));
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
  return own;
}

function isWritable(folder: string | undefined): boolean {
  if (!folder) return false;
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
