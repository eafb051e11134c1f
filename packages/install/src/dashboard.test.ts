import { expect, test } from "bun:test";

import { dashboard } from "./dashboard.ts";

interface Panels {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
}

test("nothing counts twice because several replicas report it", () => {
  const { panels } = dashboard() as Panels;
  const sums = panels.flatMap(({ title, targets }) =>
    targets.filter(({ expr }) => expr.includes("sum")).map(({ expr }) => ({ title, expr })),
  );
  expect(sums.length).toBeGreaterThan(10);
  // What a replica counts is its own, and so is whether it leads.
  const isOwn = (expr: string): boolean => expr.includes("rate(") || expr.includes("leader_election_master_status");
  expect(sums.filter(({ expr }) => !isOwn(expr) && !/\bsum\(max by \([a-z_, ]+\) \(/.test(expr))).toEqual([]);
});
