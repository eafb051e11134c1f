import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, expect, test } from "bun:test";

import { hashSources } from "./sources.ts";

const root = mkdtempSync(join(tmpdir(), "pko-sources-"));
afterAll(() => rmSync(root, { recursive: true }));

test("the hash of the sources changes with each of them, but not with a test", async () => {
  const file = (path: string): string => join(root, path);
  mkdirSync(file("packages/agent/src"), { recursive: true });
  writeFileSync(file("package-lock.json"), "{}");
  writeFileSync(file("packages/agent/src/main.ts"), "one");
  const first = await hashSources(root);

  writeFileSync(file("packages/agent/src/main.test.ts"), "a test");
  expect(await hashSources(root)).toBe(first);

  const hashes = [first, await hashSources(root, "3.0.0")];
  writeFileSync(file("packages/agent/src/main.ts"), "two");
  hashes.push(await hashSources(root));
  renameSync(file("packages/agent/src/main.ts"), file("packages/agent/src/start.ts"));
  hashes.push(await hashSources(root));
  writeFileSync(file("package-lock.json"), "{ }");
  hashes.push(await hashSources(root));
  expect(new Set(hashes).size).toBe(5);
});
