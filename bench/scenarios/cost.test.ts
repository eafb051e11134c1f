import { expect, test } from "bun:test";

import { findings } from "./cost.ts";

test("the figures count the requests of an operation, and those that matter apart", () => {
  const requests = { "get secrets": 3, "patch stacks/status": 4, "patch workspaces/status": 2, "list pods": 0.5 };
  const { figures } = findings([{ title: "creation", operatorMs: 120, apiServerMs: 350, requests }]);
  expect(figures.map(({ id, values }) => [id, values[0]])).toEqual([
    ["cost.creation.operator", 120],
    ["cost.creation.apiserver", 350],
    ["cost.creation.requests", 9.5],
    ["cost.creation.stack", 4],
    ["cost.creation.workspace", 2],
    ["cost.creation.secrets", 3],
  ]);
});
