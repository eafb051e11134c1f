/** Unpacks archives, for the targets that describe them in different ways. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { untar } from "../../../packages/agent/src/sources/untar.ts";
import { inCage } from "../engine/cage.ts";
import { lazyFolder } from "../engine/folder.ts";
import { hold } from "../engine/target.ts";

export const limits = { maxBytes: 256 * 1024, maxEntries: 20, maxRatio: 20, ratioFloorBytes: 64 * 1024 };

/** The files by their paths; folders end with a slash. */
export type Files = ReadonlyMap<string, string>;

const base = lazyFolder();

function writeArchive(archive: Uint8Array): string {
  const file = join(base(), "archive");
  writeFileSync(file, archive);
  return file;
}

/** What `untar` unpacks; undefined if it rejects the archive. Checks what holds for any archive. */
export async function unpacked(archive: Uint8Array): Promise<Files | undefined> {
  const file = writeArchive(archive);
  let found: Files | undefined;
  await inCage(async (folder) => {
    const outcome = await untar(file, folder, limits);
    const files = filesIn(folder);
    const bytes = files.values().reduce((sum, text) => sum + text.length, 0);
    hold(bytes <= limits.maxBytes, "no more is written than allowed");
    if (outcome.ok) {
      hold(outcome.value <= limits.maxEntries, "no more entries are unpacked than allowed");
      found = files;
      return;
    }
    hold(outcome.failure.message.length < 1000, "a message is short");
    // oxlint-disable-next-line no-control-regex -- it must match control characters
    hold(!/[\u0000-\u001F]/.test(outcome.failure.message), "a message has no control characters");
  });
  return found;
}

/** Undefined if tar rejects the archive, which may be compressed. */
export async function unpackWithGnuTar(archive: Uint8Array): Promise<Files | undefined> {
  const file = writeArchive(archive);
  const options = ["--no-same-owner", "--no-same-permissions", "--delay-directory-restore", "--mode=u+rwx"];
  let found: Files | undefined;
  await inCage(async (folder) => {
    try {
      execFileSync("tar", ["-x", "-f", file, "-C", folder, ...options], { stdio: ["ignore", "ignore", "pipe"] });
    } catch {
      return;
    }
    found = filesIn(folder);
  });
  return found;
}

/** Follows no links. */
function filesIn(folder: string): Files {
  const files = new Map<string, string>();
  const add = (path: string): void => {
    for (const entry of readdirSync(join(folder, path), { withFileTypes: true })) {
      const inside = path + entry.name;
      hold(entry.isFile() || entry.isDirectory(), "only files and folders are created");
      if (entry.isFile()) files.set(inside, readFileSync(join(folder, inside), "latin1"));
      if (!entry.isDirectory()) continue;
      files.set(`${inside}/`, "");
      add(`${inside}/`);
    }
  };
  add("");
  return files;
}
