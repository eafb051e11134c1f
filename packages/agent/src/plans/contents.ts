/** Identifies the files of a program that is used in place: its folder is in the image or on a volume. */
import { createHash } from "node:crypto";
import { readdir, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileDigest } from "../system/digest.ts";

/** Written by installations and runs. */
const generated: ReadonlySet<string> = new Set([
  ".git",
  ".pulumi",
  ".venv",
  "__pycache__",
  "node_modules",
  "sdks",
  "venv",
]);

export async function folderContents(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const line of describe(folder, "")) hash.update(`${line}\n`);
  return `folder:${hash.digest("hex")}`;
}

async function* describe(folder: string, path: string): AsyncGenerator<string> {
  const entries = await readdir(join(folder, path), { withFileTypes: true });
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const inner = join(path, entry.name);
    if (generated.has(entry.name)) continue;
    if (entry.isDirectory()) yield* describe(folder, inner);
    else if (entry.isSymbolicLink()) yield* describeLink(folder, inner, entry.name);
    else if (entry.isFile()) yield await describeFile(folder, inner);
  }
}

async function describeFile(folder: string, path: string): Promise<string> {
  const file = join(folder, path);
  const isExecutable = ((await stat(file)).mode & 0o100) !== 0;
  return JSON.stringify(["file", path, isExecutable, await fileDigest(file)]);
}

/** The agent links the settings of stacks into the folder. The plan depends on them as configuration. */
async function* describeLink(folder: string, path: string, name: string): AsyncGenerator<string> {
  if (/^Pulumi\..+\.ya?ml$/.test(name)) return;
  yield JSON.stringify(["link", path, await readlink(join(folder, path))]);
}
