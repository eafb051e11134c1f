import { expect, test } from "bun:test";

import { formatInputs, parseInputs, type Input } from "./inputs.ts";

test("inputs survive being written, sorted and once each", () => {
  const inputs: Input[] = [
    ["secret/db.pass@word", "1a2b"],
    ["db.url", "3c4d"],
    ["db.url", "3c4d"],
  ];
  expect(parseInputs(formatInputs(inputs))).toEqual([
    ["db.url", "3c4d"],
    ["secret/db.pass@word", "1a2b"],
  ]);
});

test("no inputs are an empty text", () => expect(parseInputs(formatInputs([]))).toEqual([]));
