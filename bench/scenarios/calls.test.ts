import { expect, test } from "bun:test";

import { parseCalls } from "./calls.ts";

test("a call has its command without flags and its duration", () => {
  const text =
    "1700000000000000000 1700000000650000000 up --yes --stack=dev\n1700000001000000000 1700000001100000000 stack init dev\n";
  expect(parseCalls(text)).toEqual([
    { command: "pulumi up", ms: 650 },
    { command: "pulumi stack init", ms: 100 },
  ]);
});

test("an empty log has no calls", () => expect(parseCalls("")).toEqual([]));
