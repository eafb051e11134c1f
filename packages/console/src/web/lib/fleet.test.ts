import { describe, expect, test } from "bun:test";

import {
  countStates,
  countText,
  distinct,
  filterFleet,
  filterFromQuery,
  filterToQuery,
  fleetRow,
  noFilter,
  sortFleet,
} from "./fleet.ts";
import { aStack, condition, failing, ready, waiting } from "./testing.ts";

const rows = [
  aStack("b/ready", ready, { projectRepo: "https://example.com/one.git", branch: "main" }),
  aStack("a/ready", ready, { projectRepo: "https://example.com/one/", branch: "main" }),
  aStack("a/waiting", waiting, { projectRepo: "https://example.com/two", branch: "main" }),
  aStack("a/new", undefined, { programRef: { name: "program" } }),
  aStack("z/failing", failing),
].map(fleetRow);

const names = (filter: Partial<typeof noFilter>): string[] =>
  filterFleet(rows, { ...noFilter, ...filter }).map(({ namespace, name }) => `${namespace}/${name}`);

test("those that need attention are first, then by namespace and name", () => {
  const sorted = sortFleet(rows).map(({ namespace, name }) => `${namespace}/${name}`);
  expect(sorted).toEqual(["z/failing", "a/waiting", "a/new", "a/ready", "b/ready"]);
});

test("a drifted Stack shows its drift", () => {
  const { conditions = [] } = ready;
  const drifted = { ...ready, conditions: [...conditions, condition("Drifted", "True", "DriftDetected")] };
  expect(fleetRow(aStack("a/b", drifted))).toMatchObject({ state: "Drifted", message: "about DriftDetected" });
});

test("a Stack that the operator has not seen says so", () => {
  expect(fleetRow(aStack("a/b"))).toMatchObject({
    state: "Unknown",
    message: "The operator has not processed this Stack yet.",
  });
});

describe("a filter", () => {
  test.each([
    ["all", {}, ["b/ready", "a/ready", "a/waiting", "a/new", "z/failing"]],
    ["by namespace", { namespace: "b" }, ["b/ready"]],
    ["by state", { state: "Failing" }, ["z/failing"]],
    ["by repository, however it is spelled", { repository: "https://example.com/one" }, ["b/ready", "a/ready"]],
    ["by a Program", { repository: "Program program" }, ["a/new"]],
    ["by a word of the message, in any case", { search: "APPROVAL" }, ["a/waiting"]],
    ["by words that all occur", { search: "a ready" }, ["b/ready", "a/ready"]],
    ["by words of which one does not occur", { search: "ready nothing" }, []],
    ["by several", { search: "ready", namespace: "a" }, ["a/ready"]],
  ])("%s", (_, filter, expected) => expect(names(filter)).toEqual(expected));

  test("survives the address", () => {
    const filter = { search: "a&b=c d", namespace: "shop", state: "", repository: "https://example.com/?x" };
    expect(filterFromQuery(new URLSearchParams(filterToQuery(filter)))).toEqual(filter);
    expect(filterToQuery(noFilter)).toBe("");
  });
});

test("all states are counted, also those that no Stack is in", () => {
  const counts = Object.fromEntries(countStates(rows).map(({ state, count }) => [state, count]));
  expect(counts).toEqual({ Failing: 1, Waiting: 1, Working: 0, Unknown: 1, Drifted: 0, Ready: 2 });
});

test("the values of a filter are sorted, without duplicates and blanks", () => {
  expect(distinct(["b", "a", "", "b"])).toEqual(["a", "b"]);
});

test.each([
  [0, 0, "0 Stacks"],
  [1, 1, "1 Stack"],
  [6, 6, "6 Stacks"],
  [2, 6, "2 of 6 Stacks"],
  [0, 1, "0 of 1 Stack"],
])("%d of %d", (shown, all, text) => expect(countText(shown, all)).toBe(text));
