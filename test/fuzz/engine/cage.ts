/** A folder for what an input may write. It is deep within another one, in which nothing else may change. */
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chdir, cwd } from "node:process";

import { lazyFolder } from "./folder.ts";
import { hold } from "./target.ts";

const root = lazyFolder();

/** More than the levels that a path with `..` is likely to climb. */
const levels = ["a", "b", "c", "d", "e", "f", "g", "h"];

/**
 * Calls the function with an empty folder, and checks afterwards that nothing around it was created, changed or deleted.
 * Meanwhile, the folder above is the working directory: an absolute path reaches it as `/proc/self/cwd`.
 */
export async function inCage(use: (folder: string) => Promise<void>): Promise<void> {
  const above = cage();
  const folder = join(above, "out");
  mkdirSync(folder);
  const before = describe(root(), folder);
  const directory = cwd();
  chdir(above);
  try {
    // In any case: that something escaped matters more than an error.
    await use(folder).finally(() => {
      const isSame = Bun.deepEquals(describe(root(), folder), before);
      hold(isSame, "nothing outside of the folder is created, changed or deleted");
    });
    rmSync(folder, { recursive: true });
  } catch (error) {
    // The next input starts with a new cage.
    for (const name of readdirSync(root())) rmSync(join(root(), name), { recursive: true });
    throw error;
  } finally {
    chdir(directory);
  }
}

/** The innermost folder of the cage. Each one has a file that could be overwritten. */
function cage(): string {
  const isPresent = readdirSync(root()).length > 0;
  return levels.reduce((parent, level) => {
    const path = join(parent, level);
    if (isPresent) return path;
    mkdirSync(path);
    writeFileSync(join(path, "present"), "present");
    return path;
  }, root());
}

/** Everything by its path, except what is in the folder. */
function describe(path: string, folder: string): Record<string, string> {
  const entry = lstatSync(path);
  if (path === folder) return { [path]: entry.isDirectory() ? "the folder" : "something else" };
  const facts = `${entry.mode} ${entry.nlink} ${entry.mtimeMs}`;
  if (entry.isFile()) return { [path]: `${facts} ${readFileSync(path, "latin1")}` };
  const inside = entry.isDirectory() ? readdirSync(path).map((name) => describe(join(path, name), folder)) : [];
  return Object.assign({ [path]: facts }, ...inside) as Record<string, string>;
}
