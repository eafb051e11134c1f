/** The projects in the examples. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, test } from "bun:test";

import { files, root } from "./pages.ts";

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
