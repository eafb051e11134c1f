import { expect, test } from "bun:test";

import { parseDifferences } from "./git-differences.ts";

const hash = "a".repeat(40);
const line = (path: string, { before = "100644", after = "100644", status = "M" } = {}): string =>
  `:${before} ${after} ${hash} ${hash} ${status}\0${path}\0`;

const cases: readonly (readonly [string, string, ReturnType<typeof parseDifferences>])[] = [
  ["nothing", "", []],
  ["a changed file", line("infra/a"), [{ path: "infra/a", isSubmodule: false }]],
  [
    "an added and a deleted file, with unusual names",
    line('a "b"\n', { before: "000000", status: "A" }) + line("c", { after: "000000", status: "D" }),
    [
      { path: 'a "b"\n', isSubmodule: false },
      { path: "c", isSubmodule: false },
    ],
  ],
  ["a submodule", line("library", { after: "160000" }), [{ path: "library", isSubmodule: true }]],
  [
    "a removed submodule",
    line("library", { before: "160000", after: "000000" }),
    [{ path: "library", isSubmodule: true }],
  ],
  ["output that ends within a path", line("infra/a").slice(0, -1), undefined],
  ["output that ends before a path", line("infra/a").slice(0, -"infra/a\0".length), undefined],
  ["other output", "fatal: no\0x\0", undefined],
];
test.each(cases)("%s", (_, text, differences) => expect(parseDifferences(text)).toEqual(differences as never));
