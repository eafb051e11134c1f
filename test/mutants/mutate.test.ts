/** What mutation testing changes in a rule. */
import { expect, test } from "bun:test";

import { applied, mutantsOf } from "./mutate.ts";

const table: Record<string, { readonly source: string; readonly mutants: readonly string[] }> = {
  "a comparison is inverted": { source: "a === b;", mutants: ["a !== b;"] },
  "an upper bound is inverted, or included": { source: "a < b;", mutants: ["a >= b;", "a <= b;"] },
  "an upper bound is inverted, or excluded": { source: "a <= b;", mutants: ["a > b;", "a < b;"] },
  "a lower bound is inverted, or included": { source: "a > b;", mutants: ["a <= b;", "a >= b;"] },
  "a lower bound is inverted, or excluded": { source: "a >= b;", mutants: ["a < b;", "a > b;"] },
  "and becomes or": { source: "a && b;", mutants: ["(a || b);"] },
  "a default is always used": { source: "a ?? b;", mutants: ["(b);"] },
  "a negation is dropped": { source: "!a;", mutants: ["(a);"] },
  "the branches of a conditional are swapped": { source: "a ? b : c;", mutants: ["!(a) ? b : c;"] },
  "a condition always or never holds": { source: "if (a) b();", mutants: ["if (true) b();", "if (false) b();"] },
  "a number is off by one": { source: "f(3);", mutants: ["f((3 + 1));"] },
  "a rule is left out of its list": {
    source: "const rules = [first, second];",
    mutants: ["const rules = [() => undefined, second];", "const rules = [first, () => undefined];"],
  },
  "texts are left alone": { source: 'say("a" + b, `c${d}`);', mutants: [] },
};

for (const [name, { source, mutants }] of Object.entries(table)) {
  test(name, () => {
    expect(mutantsOf(source).map((mutant) => applied(source, mutant))).toEqual([...mutants]);
  });
}

test("a mutant knows its line", () => {
  expect(mutantsOf("a;\nb;\nif (c) d();\n").map(({ line }) => line)).toEqual([3, 3]);
});
