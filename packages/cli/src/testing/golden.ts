/** For tests: compares text with a file. `UPDATE_GOLDEN=1` rewrites the files. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { expect } from "bun:test";

const folder = join(import.meta.dir, "../testdata");

export function expectGolden(name: string, text: string): void {
  const path = join(folder, name);
  if (process.env["UPDATE_GOLDEN"]) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  expect(text).toBe(readFileSync(path, "utf8"));
}
