/** Programs from Debian packages, which are downloaded and not installed: an installed package may start a service. */
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";

import { attempt, run } from "./shell.ts";

export interface DebianTool {
  readonly debianPackage: string;
  /** Its path in the package. */
  readonly file: string;
  /** Not needed by the cluster itself. */
  readonly optional: true;
}

/** Puts only the program into the folder. */
export async function extractFromPackage({ debianPackage, file }: DebianTool, folder: string): Promise<void> {
  await download(debianPackage, folder);
  const archive = readdirSync(folder).find((name) => name.endsWith(".deb")) ?? "";
  await run(["dpkg-deb", "--extract", archive, "package"], { cwd: folder });
  await run(["mv", join("package", file), basename(file)], { cwd: folder });
  await run(["rm", "-r", "package", archive], { cwd: folder });
}

/** apt's list of packages may be missing or too old. */
async function download(name: string, folder: string): Promise<void> {
  // Without its own user, who could not write to the folder.
  const command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", name];
  if ((await attempt(command, { cwd: folder })).code === 0) return;
  await run(["apt-get", "update", "-qq"]);
  await run(command, { cwd: folder });
}
