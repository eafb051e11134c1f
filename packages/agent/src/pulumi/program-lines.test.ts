import { expect, test } from "bun:test";
import { quoteProgram } from "./program-lines.ts";

test("a line that an error names is put beside it", () => {
  const program = "name: web\nruntime: yaml\noutputs:\n  text:\n    fn::join: 5\n";
  const errors = [
    "\t* Pulumi.yaml:5,15-16: the argument to fn::join must be a two-valued list;",
    "Pulumi.yaml:99,1-2: beyond the end",
    "index.ts:5,1: of another language",
  ];
  expect(quoteProgram(errors, program)).toEqual([`${errors[0]} (line 5: fn::join: 5)`, ...errors.slice(1)]);
});
