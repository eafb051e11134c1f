/** What the executables of this clone are made of. */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";

/** A hash of the packages, without their tests, and of everything else that decides what is built from them. */
export async function hashSources(root: string, version = ""): Promise<string> {
  const hash = createHash("sha256").update(JSON.stringify([Bun.version, version]));
  const entries = await readdir(join(root, "packages"), { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && !entry.name.includes(".test."))
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)));
  for (const file of ["package-lock.json", ...files.toSorted()]) {
    hash.update(file).update(await readFile(join(root, file)));
  }
  return hash.digest("hex");
}
