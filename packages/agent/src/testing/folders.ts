/** For tests: folders that are deleted after the test file. */
import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "pko-agent-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
