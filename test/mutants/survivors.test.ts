/** Which survivors are known, and which entries of survivors.json are stale. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { repositoryRoot } from "../runner/suites.ts";
import { mutantsOf } from "./mutate.ts";
import { changeOf, compareSurvivors, type KnownSurvivor } from "./survivors.ts";

const changes = (source: string) => mutantsOf(source).map((mutant) => changeOf("rule.ts", source, mutant));

test("a change is described by its lines, wherever they are and however they are indented", () => {
  const expected = { file: "rule.ts", before: "const isDue = now < due;", after: "const isDue = now >= due;" };
  expect(changes("const isDue = now < due;")).toEqual([expected]);
  expect(changes("// A comment.\n\n  const isDue =\n    now < due;\nf();\n")).toEqual([
    { ...expected, before: "now < due;", after: "now >= due;" },
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
