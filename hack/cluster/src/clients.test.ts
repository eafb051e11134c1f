import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { scriptsFolder } from "./clients.ts";
import { run } from "./shell.ts";
import { toolPath } from "./tools.ts";
import { userShellSetup } from "./user-shell.ts";

const folder = mkdtempSync(join(tmpdir(), "pko-clients-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The program that the script `kubectl` of the user's shell calls, on a cluster of the user's own. */
async function kubectl(...path: readonly string[]): Promise<string> {
  const script = 'console.log((await import("./clients.ts")).kubectlProgram())';
  const env = { PATH: path.join(":"), CLUSTER_KUBECONFIG: "/any" };
  return (await run([process.execPath, "--eval", script], { cwd: import.meta.dir, env })).trim();
}

test("the user's own kubectl is used, and not the script in the shell that a demo has set up", async () => {
  await userShellSetup();
  const own = join(folder, "kubectl");
  writeFileSync(own, "#!/bin/sh\n", { mode: 0o755 });
  expect(await kubectl(folder)).toBe(own);
  expect(await kubectl(scriptsFolder, folder)).toBe(own);
  expect(await kubectl(scriptsFolder)).toBe(toolPath("kubectl"));
});
