/**
 * Identifies the executable of the CLI, so that its version is known in every pod that has the same file. A script, or a
 * launcher that several tools share, may start one version or another, so only an executable named `pulumi` is identified.
 */
import { constants } from "node:fs";
import { access, open, realpath } from "node:fs/promises";
import { basename, join } from "node:path";
import { jsonDigest } from "../system/digest.ts";

const elf = Buffer.from("\u007FELF", "latin1");

/** Undefined if the file does not determine the version. `path` is the variable PATH. */
export async function identifyCli(file: string, path = ""): Promise<string | undefined> {
  try {
    const found = await findExecutable(file, path);
    if (found === undefined) return undefined;
    const resolved = await realpath(found);
    return basename(resolved) === "pulumi" ? await identifyBinary(resolved) : undefined;
  } catch {
    // The CLI is started, and what is wrong with it is reported then.
    return undefined;
  }
}

async function findExecutable(file: string, path: string): Promise<string | undefined> {
  const candidates = file.includes("/") ? [file] : path.split(":").flatMap((each) => (each ? [join(each, file)] : []));
  for (const candidate of candidates) {
    const isExecutable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isExecutable) return candidate;
  }
  return undefined;
}

/** Layers of an image keep the time at which a file was written. */
async function identifyBinary(path: string): Promise<string | undefined> {
  const file = await open(path, "r");
  try {
    const { buffer } = await file.read(Buffer.alloc(elf.length), 0, elf.length, 0);
    const { size, mtimeMs } = await file.stat();
    return buffer.equals(elf) ? jsonDigest([path, size, mtimeMs]) : undefined;
  } finally {
    await file.close();
  }
}
