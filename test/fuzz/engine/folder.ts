/** Folders for targets that write files. */
import { mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Returns a function that creates a folder when it is called first. It is deleted with those of the worker. */
export function lazyFolder(): () => string {
  let folder: string | undefined;
  return () => (folder ??= realpathSync(mkdtempSync(join(tmpdir(), "target-"))));
}
