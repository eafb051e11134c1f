import { expect, test } from "bun:test";

import { averages, costTable, countRequests } from "./table.ts";

const query = new URLSearchParams();

test("requests are counted by verb and resource, without the Lease", () => {
  const counted = countRequests([
    { verb: "get", resource: "secrets", query },
    { verb: "get", resource: "secrets", query },
    { verb: "patch", resource: "stacks", subresource: "status", query },
    { verb: "create", resource: "pods", query: new URLSearchParams("dryRun=All") },
    { verb: "update", resource: "leases", query },
  ]);
  expect(counted).toEqual({ "create pods (dry run)": 1, "get secrets": 2, "patch stacks/status": 1 });
});

test("the table has a column for each operation", () => {
  const cost = (title: string, requests: Record<string, number>) => ({
    title,
    operatorMs: 12.4,
    apiServerMs: 30,
    requests,
  });
  expect(costTable([cost("creation", { "get secrets": 2 }), cost("deletion", {})]).split("\n")).toEqual([
    "                       creation  deletion",
    "CPU of the operator       12 ms     12 ms",
    "CPU of the API server     30 ms     30 ms",
    "requests                      2         0",
    "  get secrets                 2",
  ]);
});

test("rounds are averaged, and a request that not every round makes is a fraction", () => {
  const cost = (operatorMs: number, requests: Record<string, number>) => [
    { title: "creation", operatorMs, apiServerMs: 30, requests },
  ];
  expect(averages([cost(10, { "get secrets": 2 }), cost(20, { "get secrets": 2, "list pods": 1 })])).toEqual([
    { title: "creation", operatorMs: 15, apiServerMs: 30, requests: { "get secrets": 2, "list pods": 0.5 } },
  ]);
});
