import { expect, test } from "bun:test";
import { mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { installExecutable, repairExecutable } from "./install.ts";

test("a copy is replaced only if it is incomplete", async () => {
  const folder = await mkdtemp(join(tmpdir(), "install-"));
  try {
    const [executable, target] = [join(folder, "agent"), join(folder, "copy")];
    await writeFile(executable, "a program");
    await installExecutable(executable, target);
    const { ino, mode } = await stat(target);
    expect(mode & 0o777).toBe(0o755);

    await repairExecutable(executable, target);
    expect((await stat(target)).ino).toBe(ino);

    await truncate(target, 3);
    await repairExecutable(executable, target);
    expect(await readFile(target, "utf8")).toBe("a program");
  } finally {
    await rm(folder, { recursive: true });
  }
});
