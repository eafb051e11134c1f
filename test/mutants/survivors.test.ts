/** Which survivors are known, and which entries of survivors.json are stale. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { repositoryRoot } from "../runner/suites.ts";
import { mutantsOf } from "./mutate.ts";
import { changeOf, compareSurvivors, failuresOf, type KnownSurvivor } from "./survivors.ts";

const changes = (source: string) => mutantsOf(source).map((mutant) => changeOf("rule.ts", source, mutant));

test("a change is described by its lines, wherever they are and however they are indented", () => {
  const expected = { file: "rule.ts", before: "const isDue = now === due;", after: "const isDue = now !== due;" };
  expect(changes("const isDue = now === due;")).toEqual([expected]);
  expect(changes("// A comment.\n\n  const isDue =\n    now === due;\nf();\n")).toEqual([
    { ...expected, before: "now === due;", after: "now !== due;" },
  ]);
});

test("changes of the same lines are distinguished", () => {
  expect(changes("if (\n  a\n) b();\n").map(({ before, after }) => [before, after])).toEqual([
    ["a", "true"],
    ["a", "false"],
  ]);
  const [first, second] = changes("f(1, 1);");
  expect([first?.after, second?.after]).toEqual(["f((1 + 1), 1);", "f(1, (1 + 1));"]);
});

test("survivors are known with their reason or unknown, and entries without a survivor are stale", () => {
  const [always, never] = changes("if (a) b();");
  if (!always || !never) throw new Error("no mutants");
  const entry = { ...always, reason: "b does nothing without a" };
  const removed = { file: "rule.ts", before: "if (c) d();", after: "if (true) d();", reason: "removed" };
  expect(compareSurvivors([always, never], [entry])).toEqual({ known: [entry], unknown: [never], stale: [] });
  expect(compareSurvivors([never], [entry, removed])).toEqual({
    known: [],
    unknown: [never],
    stale: [entry, removed],
  });
  expect(compareSurvivors([{ ...always, file: "other.ts" }], [entry]).known).toEqual([]);
});

const complete = { all: 100, killed: 90, unknown: 0, stale: 0, isComplete: true };

test.each([
  ["succeeds if enough were killed", complete, []],
  ["fails if too few were killed", { ...complete, killed: 89 }, ["fewer than 90 %"]],
  ["fails if one survived without a reason", { ...complete, killed: 99, unknown: 1 }, ["1 survived without a reason"]],
  ["fails if an entry is stale", { ...complete, stale: 1 }, ["survivors.json lists what no longer survives (1)"]],
  ["of some rules ignores both", { ...complete, unknown: 1, stale: 1, isComplete: false }, []],
  ["of some rules fails if too few were killed", { ...complete, killed: 89, isComplete: false }, ["fewer than 90 %"]],
])("a run %s", (_, outcome, failures) => {
  expect(failuresOf(outcome).map((each) => each.split(/: | were/, 1)[0] ?? "")).toEqual([...failures]);
});

test("every entry is a mutant of a rule, listed once, with a reason", () => {
  const listed = JSON.parse(readFileSync(join(import.meta.dir, "survivors.json"), "utf8")) as KnownSurvivor[];
  const exists = ({ file, before, after }: KnownSurvivor): boolean => {
    const path = join(repositoryRoot, file);
    if (!existsSync(path)) return false;
    const source = readFileSync(path, "utf8");
    return mutantsOf(source).some((mutant) => Bun.deepEquals(changeOf(file, source, mutant), { file, before, after }));
  };
  expect(listed.filter((entry) => !exists(entry) || entry.reason === "")).toEqual([]);
  expect(new Set(listed.map(({ file, before, after }) => `${file} ${before} ${after}`)).size).toBe(listed.length);
});
