import { expect, test } from "bun:test";

import { globSelector } from "./globs.ts";

const cases: readonly (readonly [string, readonly string[], Readonly<Record<string, boolean>>])[] = [
  ["no filters select everything", [], { "a.ts": true, "docs/b.md": true }],
  [
    "a filter matches the whole path",
    ["infra/Pulumi.yaml"],
    { "infra/Pulumi.yaml": true, "infra/Pulumi.yaml.bak": false },
  ],
  ["the name of a directory matches no file in it", ["infra"], { infra: true, "infra/a.ts": false }],
  [
    "a star matches within one directory",
    ["infra/*"],
    { "infra/a.ts": true, "infra/b/a.ts": false, "infra/.env": true },
  ],
  ["two stars match at any depth", ["infra/**"], { "infra/a.ts": true, "infra/b/c/.d": true, "infra2/a.ts": false }],
  ["a suffix at any depth", ["**/*.ts"], { "a.ts": true, "x/y/a.ts": true, "x/y/a.tsx": false }],
  ["alternatives", ["{web,api}/**"], { "web/a": true, "api/b": true, "db/c": false }],
  ["only exclusions select the rest", ["!docs/**"], { "infra/a.ts": true, "docs/a.md": false }],
  [
    "exclusions win, whatever their order",
    ["!infra/docs/**", "infra/**"],
    { "infra/a.ts": true, "infra/docs/a.md": false, "web/a.ts": false },
  ],
];
test.each(cases)("%s", (_, globs, names) => {
  const selects = globSelector(globs);
  expect(Object.fromEntries(Object.keys(names).map((name) => [name, selects(name)]))).toEqual({ ...names });
});
