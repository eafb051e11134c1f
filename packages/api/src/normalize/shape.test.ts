import { expect, test } from "bun:test";

import { normalizeStack } from "./stack.ts";

const stack = (spec: object): object => ({ metadata: { name: "web", namespace: "team" }, spec });

test.each([
  ["accepted", { stack: "dev", programRef: { name: "program" } }],
  ["rejected with the same problems", { stack: 5, programRef: {}, envRefs: { A: { type: "Literal" } } }],
])("a Stack is %s, however often its schema was checked", (_, spec) => {
  const first = normalizeStack(stack(spec));
  for (let count = 0; count < 100; count++) expect(normalizeStack(stack(spec))).toEqual(first);
});
