import { UserError } from "@pko/cluster";
import { describe, expect, test } from "bun:test";

import { parseOptions } from "./options.ts";
import { full, quick, smallScale } from "./scenarios/sizes.ts";

type Variables = Readonly<Record<string, string | undefined>>;

function problemsOf(variables: Variables): readonly string[] {
  try {
    parseOptions(variables);
    return [];
  } catch (error) {
    if (error instanceof UserError) return error.problems;
    throw error;
  }
}

test("without variables, everything is measured", () => {
  expect(parseOptions({})).toMatchObject({ sizes: full, turns: 2, only: [], retain: false });
  expect(parseOptions({ QUICK: "1" })).toMatchObject({ sizes: quick, turns: 1 });
});

test("variables that make passes without a value are not given", () => {
  const variables = ["TURNS", "ROUNDS", "CROWDS", "HELD", "IDLE", "STACKS", "UPDATES", "WINDOW", "SMALL", "WORKSPACE"];
  expect(parseOptions(Object.fromEntries(variables.map((name) => [name, ""])))).toEqual(parseOptions({}));
});

test("variables replace the sizes", () => {
  const { sizes, turns } = parseOptions({ TURNS: "3", ROUNDS: "10", CROWDS: "5, 30", IDLE: "0,200", HELD: "7" });
  expect({ sizes, turns }).toEqual({
    sizes: { ...full, rounds: 10, crowds: [5, 30], idle: [0, 200], held: 7 },
    turns: 3,
  });
  expect(parseOptions({ SMALL: "1", STACKS: "30", UPDATES: "0", WINDOW: "60" }).sizes).toEqual({
    ...full,
    pushed: 30,
    windowMs: 60_000,
    scale: { ...smallScale, stacks: 30, updatesEach: 0, windowS: 60 },
  });
});

describe("a number with which nothing would be measured is rejected", () => {
  const positive = ["TURNS", "ROUNDS", "HELD", "STACKS", "WINDOW"];
  const wrong = ["abc", "0", "-1", "1.5", "1e3", "Infinity", " ", "2,3"];
  test.each(positive.flatMap((name) => wrong.map((value) => [name, value] as const)))("%s=%s", (name, value) => {
    expect(problemsOf({ [name]: value, AGAINST: "install.yaml" })).toEqual([
      `${name} is ${JSON.stringify(value)}: give a whole number of 1 or more, such as ${name}=2`,
    ]);
  });

  test.each(["abc", "-1", "1.5"])("UPDATES=%s, which may be 0", (value) => {
    expect(problemsOf({ UPDATES: value })).toEqual([
      `UPDATES is "${value}": give a whole number of 0 or more, such as UPDATES=2`,
    ]);
  });

  test.each(["abc", "0", "1,,5", "5,", ","])("CROWDS=%s", (value) => {
    expect(problemsOf({ CROWDS: value })).toEqual([
      `CROWDS is "${value}": give whole numbers of 1 or more, separated by commas, such as CROWDS=2,10`,
    ]);
  });

  test("IDLE=0,x, which may have 0", () => {
    expect(problemsOf({ IDLE: "0,x" })).toEqual([
      'IDLE is "0,x": give whole numbers of 0 or more, separated by commas, such as IDLE=2,10',
    ]);
  });
});

test.each(["{", "[]", "null", "1"])("WORKSPACE=%s is rejected, because it is not an object", (value) => {
  expect(problemsOf({ WORKSPACE: value })).toEqual([
    `WORKSPACE is ${JSON.stringify(value)}: give a JSON object, such as WORKSPACE='{"serviceAccountName":"default"}'`,
  ]);
});

test("all problems are reported at once", () => {
  expect(problemsOf({ TURNS: "abc", ROUNDS: "0", IDLE: "x" })).toHaveLength(3);
});
