/** Renovate finds every pinned version. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, test } from "bun:test";

import { files, root } from "./pages.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");

interface CustomManager {
  readonly description: string;
  readonly managerFilePatterns: readonly string[];
  readonly matchStrings: readonly string[];
}

const config = Bun.JSON5.parse(read(".github/renovate.json5")) as {
  readonly customManagers: readonly CustomManager[];
  readonly packageRules: readonly { readonly matchFileNames?: readonly string[] }[];
};

/** Between slashes, a pattern is a regular expression. */
const pattern = (text: string): RegExp => new RegExp(text.slice(1, -1));

interface Found {
  readonly path: string;
  readonly depName?: string;
  readonly currentValue: string;
}

function findVersions({ managerFilePatterns, matchStrings }: CustomManager): Found[] {
  const matching = files.filter((path) => managerFilePatterns.some((each) => pattern(each).test(path)));
  return matching.flatMap((path) =>
    matchStrings.flatMap((text) =>
      Array.from(read(path).matchAll(new RegExp(text, "g")), ({ groups }) => ({
        ...(groups as unknown as Found),
        path,
      })),
    ),
  );
}

const found = config.customManagers.flatMap(findVersions);

describe("each custom manager finds versions:", () => {
  test.each(config.customManagers.map((manager) => [manager.description, manager] as const))("%s", (_, manager) => {
    expect(findVersions(manager).length).toBeGreaterThan(2);
  });
});

test("every constant of the local cluster with a version is found", () => {
  const sources = files.filter((path) => /^hack\/cluster\/src\/.*\.ts$/.test(path) && !path.endsWith(".test.ts"));
  const constants = sources.flatMap((path) =>
    Array.from(read(path).matchAll(/(?:const \w+Version = |"1\.\d+": )"(\d+\.\d+\.\d+)"/g), ([, version = ""]) => ({
      path,
      version,
    })),
  );
  expect(constants.length).toBeGreaterThan(5);
  const isFound = ({ path, version }: { readonly path: string; readonly version: string }): boolean =>
    found.some((each) => each.path === path && each.currentValue === version);
  expect(constants.filter((each) => !isFound(each))).toEqual([]);
});

test("a constant for a Go module has the version that go.mod requires", () => {
  const modules = files.filter((path) => /^hack\/cluster\/go\/.*go\.mod$/.test(path)).map(read);
  const required = found.filter(({ depName = "" }) => depName.startsWith("github.com/"));
  expect(required.length).toBeGreaterThan(2);
  const isRequired = ({ depName, currentValue }: Found): boolean =>
    modules.some((text) => text.includes(`${depName} v${currentValue}`));
  expect(required.filter((each) => !isRequired(each))).toEqual([]);
});

test("rules name files that exist", () => {
  const named = config.packageRules.flatMap(({ matchFileNames = [] }) => matchFileNames);
  expect(named.map((name) => name.replace(/^!/, "")).filter((name) => !files.includes(name))).toEqual([]);
});
