/** Symbolic links that are replaced whole: whoever follows one finds the old target or the new one. */
import { lstat, mkdir, readlink, rename, rmdir, symlink, unlink } from "node:fs/promises";
import { hasCode } from "./files.ts";

/** Puts a link where a link, a file, an empty folder or nothing is. A folder with content is left alone: false. */
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
  const beside = `${path}.link`;
  await unlink(beside).catch(() => undefined);
  await symlink(target, beside);
  await rename(beside, path);
  return true;
}

/** Puts an empty folder where a link is. Anything else is left alone. */
export async function replaceLinkByFolder(path: string): Promise<void> {
  if ((await linkTarget(path)) === undefined) return;
  await unlink(path);
  await mkdir(path);
}

/** Where a link points to; undefined for anything else. */
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
