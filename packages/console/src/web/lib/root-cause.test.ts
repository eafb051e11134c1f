import type { Stack, StackSpec, StackStatus } from "@pko/api/browser";
import { describe, expect, test } from "bun:test";

import { rootCause } from "./root-cause.ts";
import { aStack, condition, failing, ready, waiting } from "./testing.ts";

const held: StackStatus = {
  observedGeneration: 1,
  conditions: [
    condition("Ready", "False", "NotReadyInProgress"),
    condition("Reconciling", "True", "PrerequisiteNotSatisfied"),
  ],
};
const suspended: StackStatus = {
  observedGeneration: 1,
  conditions: [condition("Ready", "False", "NotReadyInProgress"), condition("Reconciling", "True", "Suspended")],
};
const needs = (...names: readonly string[]): Partial<StackSpec> => ({
  prerequisites: names.map((name) => ({ name })),
});
const outputOf = (stack: string): Partial<StackSpec> => ({
  envRefs: { ID: { type: "StackOutput", stack, output: "id" } },
});
const web = aStack("a/web", held, needs("database"));

const cases: readonly (readonly [sentence: string, others: readonly Stack[], path: readonly string[]])[] = [
  ["one that is failing", [aStack("a/database", failing)], ["web", "database"]],
  ["one that waits for an approval", [aStack("a/database", waiting)], ["web", "database"]],
  ["one that is suspended", [aStack("a/database", suspended)], ["web", "database"]],
  ["one that does not exist", [], ["web", "database"]],
  [
    "one whose new spec was not processed",
    [aStack("a/database", { ...ready, observedGeneration: 0 })],
    ["web", "database"],
  ],
  [
    "the last of several, through prerequisites and outputs",
    [aStack("a/database", held, outputOf("network")), aStack("a/network", failing)],
    ["web", "database", "network"],
  ],
  [
    "the one that is not up to date among several",
    [aStack("a/database", held, needs("dns", "network")), aStack("a/dns", ready), aStack("a/network", suspended)],
    ["web", "database", "network"],
  ],
  ["the last before a cycle closes", [aStack("a/database", held, needs("web"))], ["web", "database"]],
];

describe("the root cause of a Stack that waits for others", () => {
  test.each(cases)("is %s", (_, others, path) => {
    const cause = rootCause(web, others);
    expect(cause?.path).toEqual(path);
    expect(cause?.stack?.metadata.name).toBe(others.length === 0 ? undefined : path.at(-1));
  });

  test("is its own if all others are up to date", () => {
    expect(rootCause(web, [aStack("a/database", ready)])).toBeUndefined();
  });

  test("is its own if it does not wait for others", () => {
    expect(rootCause(aStack("a/web", failing, needs("database")), [])).toBeUndefined();
  });
});
