/** Writes the generated files. With --check, writes nothing and fails if a file is stale. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { generatedFiles } from "./src/generated-files.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

async function staleFiles(): Promise<Map<string, string>> {
  const stale = new Map<string, string>();
  for (const [path, content] of await generatedFiles()) {
    const current = await readFile(join(root, path), "utf8").catch(() => undefined);
    if (current !== content) stale.set(path, content);
  }
  return stale;
}

async function write(files: ReadonlyMap<string, string>): Promise<void> {
  for (const [path, content] of files) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
    console.log(`wrote ${path}`);
  }
}

const stale = await staleFiles();
if (process.argv.includes("--check")) {
  for (const path of stale.keys()) console.error(`${path} is stale: run make generate`);
  process.exitCode = stale.size > 0 ? 1 : 0;
} else {
  await write(stale);
}
