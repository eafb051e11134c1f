/** Executables that can serve the console: its page is in them as files. */
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { buildConsole } from "./build.ts";
import { embeddedFolder } from "./src/server/assets.ts";

/** Runs `bun build` with these arguments and the page. */
export async function compileWithConsole(args: readonly string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "console-"));
  try {
    const page = join(folder, embeddedFolder);
    for (const [path, { bytes }] of await buildConsole()) {
      await mkdir(dirname(join(page, path)), { recursive: true });
      await writeFile(join(page, path), bytes);
    }
    execFileSync(process.execPath, ["build", ...args, "--asset", page], { stdio: ["ignore", "ignore", "inherit"] });
  } finally {
    await rm(folder, { recursive: true });
  }
}
