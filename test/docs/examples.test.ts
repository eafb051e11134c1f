/** The projects in the examples, and the example of an end-to-end test. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, test } from "bun:test";

import { files, pages, root } from "./pages.ts";

/**
 * Pulumi's SDK adds its own values of both options, `nodenext`, to those of the project. With another value of only one of
 * them, TypeScript fails (TS5110) if the project has no ts-node of its own.
 */
describe("the options of TypeScript agree with those that Pulumi adds:", () => {
  const configs = files.filter((path) => /^examples\/.*\/tsconfig\.json$/.test(path));
  test.each(configs)("%s", (path) => {
    const { compilerOptions } = JSON.parse(readFileSync(join(root, path), "utf8")) as { compilerOptions: object };
    expect(compilerOptions).toMatchObject({ module: "nodenext", moduleResolution: "nodenext" });
  });
});

/** The file runs with the other tests, so what the page shows works. */
test("the end-to-end test that CONTRIBUTING.md shows is the file that it names", () => {
  const page = pages.find(({ path }) => path === "CONTRIBUTING.md");
  const path = "test/e2e/sources/follow.test.ts";
  const shown = page?.blocks.filter(({ language }) => language === "ts").map(({ text }) => text.trim());
  expect(shown).toEqual([readFileSync(join(root, path), "utf8").trim()]);
  expect(page?.spans).toContain(path);
});
