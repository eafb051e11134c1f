import { expect, test } from "bun:test";
import { Redactor } from "../system/redact.ts";
import { quoteProgram } from "./program-lines.ts";

const redactor = new Redactor();
redactor.add("canary-of-the-program");
const clean = (text: string) => redactor.clean(text);

test("the line that an error refers to is added to it", () => {
  const program = "name: web\nruntime: yaml\noutputs:\n  text:\n    fn::join: 5\n";
  const errors = [
    "\t* Pulumi.yaml:5,15-16: the argument to fn::join must be a two-valued list;",
    "Pulumi.yaml:99,1-2: beyond the end",
    "index.ts:5,1: from another language",
  ];
  expect<string[]>(quoteProgram(errors.map(clean), clean(program))).toEqual([
    `${errors[0]} (line 5: fn::join: 5)`,
    ...errors.slice(1),
  ]);
});

test("a secret in the line is masked although the line is truncated within it", () => {
  const program = `${"x".repeat(190)}canary-of-the-program`;
  const [line] = quoteProgram([clean("Pulumi.yaml:1,1-2: no")], clean(program));
  expect(line).toContain("xxx[secret]");
  expect(line).not.toContain("canary");
});
