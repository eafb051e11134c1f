import { expect, test } from "bun:test";

import { chosenScenarios } from "./chosen.ts";
import { parseOptions } from "./options.ts";
import { isStandalone } from "./run.ts";
import { scenarios } from "./scenarios/index.ts";

const names = (variables: Readonly<Record<string, string>>): string[] =>
  chosenScenarios(parseOptions(variables)).map(({ name }) => name);

test("all scenarios are measured unless ONLY names some", () => {
  expect(names({})).toEqual(scenarios.map(({ name }) => name));
  expect(names({ ONLY: "push,life" })).toEqual(["life", "push"]);
});

test("with AGAINST, only scenarios that run in a cluster are measured", () => {
  expect(names({ AGAINST: "install.yaml" })).toEqual(
    scenarios.filter((scenario) => !isStandalone(scenario)).map(({ name }) => name),
  );
  expect(names({ AGAINST: "install.yaml", ONLY: "life" })).toEqual(["life"]);
});

test("a scenario that does not exist is rejected, with those that do", () => {
  expect(() => names({ ONLY: "life,lief" })).toThrow(
    /^there is no scenario lief \(ONLY\): choose from installed, life,/,
  );
});

test.each(["push,scale", "life,push"])("AGAINST is rejected with ONLY=%s, which cannot be compared", (only) => {
  expect(() => names({ AGAINST: "install.yaml", ONLY: only })).toThrow(
    /^ONLY names push.*, which AGAINST cannot compare, .*: remove AGAINST, or choose from installed, life,/,
  );
});
