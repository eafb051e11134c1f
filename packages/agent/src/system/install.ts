/** Copies of the agent's executable. */
import { chmod, copyFile, rename, stat } from "node:fs/promises";

/** The copy is renamed when it is complete, so it is never found incomplete while the node runs. */
export async function installExecutable(executable: string, target: string): Promise<void> {
  const temporary = `${target}.new`;
  await copyFile(executable, temporary);
  await chmod(temporary, 0o755);
  await rename(temporary, target);
}

/** A node that lost power soon after the copy may have lost the end of it: flushing every copy would delay every pod. */
export async function repairExecutable(executable: string, target: string): Promise<void> {
  const [expected, found] = await Promise.all([stat(executable), stat(target)]);
  if (found.size !== expected.size) await installExecutable(executable, target);
}
