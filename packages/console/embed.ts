/** Executables that can serve the console: its page is in them as files. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { compile } from "@pko/process/compile";

import { buildConsole } from "./build.ts";
import { embeddedFolder } from "./src/server/assets.ts";

/** Compiles an executable with the page. */
export async function compileWithConsole(parts: Parameters<typeof compile>[0]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "console-"));
  try {
    const page = join(folder, embeddedFolder);
    for (const [path, { bytes }] of await buildConsole()) {
      await mkdir(dirname(join(page, path)), { recursive: true });
      await writeFile(join(page, path), bytes);
    }
    compile({ ...parts, flags: [...(parts.flags ?? []), "--asset", page] });
  } finally {
    await rm(folder, { recursive: true });
  }
}
