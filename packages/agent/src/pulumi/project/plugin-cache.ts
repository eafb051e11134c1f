/** Plugins on a volume that outlives the pod. The CLI locks a plugin while it installs it, so pods can share the folder. */
import { cp, mkdir, mkdtemp, readdir, readlink, rename, rm, rmdir, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "../../system/files.ts";

const draftPrefix = ".copy-";
/** Longer than any copy takes. */
const draftKeptMs = 24 * 60 * 60_000;

/**
 * Makes the cache the CLI's folder of plugins. The rest of its home stays: it has the credentials and the selected stack of
 * this pod. Plugins of the image are copied to the cache, because the CLI reads only one folder.
 */
export async function linkPluginCache(home: string, cache: string): Promise<void> {
  const plugins = join(home, "plugins");
  const isLinked = (await linkTarget(plugins)) === cache;
  try {
    await ensureWritable(cache);
  } catch (error) {
    if (isLinked) await rm(plugins);
    throw error;
  }
  if (isLinked) return;
  await deleteOldDrafts(cache);
  for (const name of await entriesOf(plugins)) await copyInto(cache, join(plugins, name), name);
  await rm(plugins, { recursive: true, force: true });
  await symlink(cache, plugins);
}

/** Only an attempt shows it: a file server may refuse to write whatever the permissions are. */
export async function ensureWritable(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await rmdir(await mkdtemp(join(folder, draftPrefix)));
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "EINVAL")) return undefined;
    throw error;
  }
}

async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

/** Of pods that were killed while they copied. What cannot be deleted, because another user owns it, stays. */
async function deleteOldDrafts(cache: string): Promise<void> {
  const drafts = (await entriesOf(cache)).filter((name) => name.startsWith(draftPrefix));
  await Promise.allSettled(
    drafts.map(async (name) => {
      const draft = join(cache, name);
      const { mtimeMs } = await stat(draft);
      if (Date.now() - mtimeMs > draftKeptMs) await rm(draft, { recursive: true, force: true });
    }),
  );
}

/** Renamed when it is complete. A pod that was first has the same plugin. */
async function copyInto(cache: string, from: string, name: string): Promise<void> {
  if ((await entriesOf(cache)).includes(name)) return;
  const draft = join(cache, `${draftPrefix}${crypto.randomUUID()}`);
  try {
    await cp(from, draft, { recursive: true });
    await rename(draft, join(cache, name));
  } catch (error) {
    if (!hasCode(error, "ENOTEMPTY") && !hasCode(error, "EEXIST")) throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
