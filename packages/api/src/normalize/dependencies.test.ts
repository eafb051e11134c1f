import { describe, expect, test } from "bun:test";

import type { Stack } from "../kinds.ts";
import { dependenciesOf } from "./dependencies.ts";

const stackWith = (spec: object): Stack => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "web", namespace: "team" },
  spec: { stack: "dev", programRef: { name: "web" }, ...spec },
});
const output = (stack: string) => ({ type: "StackOutput", stack, output: "url" });

describe("the dependencies of a Stack", () => {
  const cases: Record<string, readonly [spec: object, dependencies: readonly string[]]> = {
    "are none without prerequisites and outputs": [
      { envRefs: { A: { type: "Literal", literal: { value: "a" } } } },
      [],
    ],
    "are its prerequisites": [{ prerequisites: [{ name: "network" }] }, ["network"]],
    "are the Stacks whose outputs it reads, as variables or as configuration": [
      { envRefs: { A: output("network") }, secretsRef: { b: output("database") } },
      ["network", "database"],
    ],
    "have each Stack once": [{ prerequisites: [{ name: "a" }], envRefs: { A: output("a"), B: output("a") } }, ["a"]],
    "are not what a value mentions": [{ config: { text: '"prerequisites" and "StackOutput"' } }, []],
    "are none if the spec is invalid": [{ prerequisites: [{ name: "network" }], programRef: undefined }, []],
  };
  for (const [what, [spec, dependencies]] of Object.entries(cases)) {
    test(what, () => expect(dependenciesOf(stackWith(spec))).toEqual([...dependencies]));
  }
});
