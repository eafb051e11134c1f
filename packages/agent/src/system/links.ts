/** Symbolic links that are replaced atomically: a reader finds the old target or the new one. */
import { lstat, mkdir, readlink, rename, rmdir, symlink, unlink } from "node:fs/promises";
import { hasCode } from "./files.ts";

/** Creates a link, replacing a link, a file or an empty folder. Returns false for a folder with content, which stays. */
export async function placeLink(path: string, target: string): Promise<boolean> {
  if ((await linkTarget(path)) === target) return true;
  if (await isRealFolder(path)) {
    try {
      await rmdir(path);
    } catch (error) {
      if (hasCode(error, "ENOTEMPTY", "EEXIST", "EBUSY")) return false;
      throw error;
    }
  }
  const temporary = `${path}.link`;
  await unlink(temporary).catch(() => undefined);
  await symlink(target, temporary);
  await rename(temporary, path);
  return true;
}

/** Replaces a link with an empty folder. Leaves anything else alone. */
export async function replaceLinkWithFolder(path: string): Promise<void> {
  if ((await linkTarget(path)) === undefined) return;
  await unlink(path);
  await mkdir(path);
}

/** The target of a link; undefined for anything else. */
export async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR", "EINVAL")) return undefined;
    throw error;
  }
}

async function isRealFolder(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory();
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}
