/** The page in an executable: the build scripts pass its folder to `bun build --compile` with `--asset`. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

import type { Assets } from "./build.ts";

/** Where the executable has it, beside its modules. The name of the folder that is embedded. */
export const embeddedFolder = "console-page";

/** Returns the arguments for `bun build`. */
export async function embedConsole(buildFolder: string, assets: Assets): Promise<string[]> {
  const folder = join(buildFolder, embeddedFolder);
  await rm(folder, { recursive: true, force: true });
  for (const [path, { bytes }] of assets) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, bytes);
  }
  return ["--asset", folder];
}
