import { readFileSync } from "node:fs";
import { join } from "node:path";

import { stackConditions } from "@pko/api";
import { describe, expect, test } from "bun:test";

import { dashboard } from "./dashboard.ts";

const template = readFileSync(
  join(import.meta.dir, "../../../charts/pulumi-kubernetes-operator/templates/prometheus-rule.yaml"),
  "utf8",
);
const [head = "", ...rest] = template.split(/^ +- alert: /m);
const alerts = new Map(rest.map((text) => [text.slice(0, text.indexOf("\n")), text]));
const expressionOf = (alert: string): string => /^ +expr: (.*)$/m.exec(alerts.get(alert) ?? "")?.[1] ?? "";

test.each([...alerts])("%s has an expression, a duration, a severity and texts", (alert, text) => {
  expect(expressionOf(alert)).not.toBe("");
  expect(text).toMatch(/^ +for: \S+/m);
  expect(text).toMatch(/severity: (critical|warning|info) /);
  expect(text).toMatch(/^ +summary: .*\.(` (\$operator )?\| quote }})?$/m);
  expect(text).toMatch(/^ +description: .*\.(` \| quote }})?$/m);
});

test.each(["PulumiStackFailing", "PulumiStackTimingOut", "PulumiStackStuck", "PulumiDriftChecksFailing"])(
  "%s does not fire for a Stack that waits on purpose, or for another Stack that is itself paused",
  (alert) => {
    expect(expressionOf(alert)).toEndWith(" unless {{ $paused }}");
    expect(head).toContain('"stacks_paused"');
  },
);

describe("a stalled Stack raises an alert with the reason", () => {
  const separate = Object.fromEntries(
    [...template.matchAll(/alert: (\w+)\n.*reason="(\w+)"/g)].map(([, alert, reason = ""]) => [reason, alert]),
  );
  const [, excluded = ""] = /reason!~"(.*)"/.exec(expressionOf("PulumiStackStalled")) ?? [];
  /** What reports these instead; a rejection is a decision of a user. */
  const others = {
    UpdateFailed: "PulumiStackFailing",
    NodeLost: "PulumiNodeLost",
    UpdateNotStopped: "PulumiUpdateNotStopped",
    ApprovalRejected: undefined,
  };

  test.each(Object.keys(stackConditions.Stalled))("%s", (reason) => {
    const isSeparate = reason in separate || reason in others;
    expect(excluded.split("|").includes(reason)).toBe(isSeparate);
  });

  test("and with no unknown reason", () => {
    const known = Object.keys(stackConditions.Stalled);
    expect([...excluded.split("|"), ...Object.keys(separate)].filter((reason) => !known.includes(reason))).toEqual([]);
    expect(Object.values(others).filter((alert) => alert !== undefined && !alerts.has(alert))).toEqual([]);
  });
});

/** `up` is a metric of Prometheus. The dashboard shows the last failures by class, what is deleted by its size, and pauses by reason. */
const notShown = new Set([
  "up",
  "stacks_paused",
  "leader_election_lease_held",
  "stack_consecutive_failures",
  "update_records_deleted_total",
  "reflector_objects",
  "operator_suspended",
  "workspaces_node_lost",
  "workspaces_update_not_stopped",
  "controller_runtime_reconcile_errors_total",
  "process_start_time_seconds",
]);

test("the dashboard shows what the alerts are about", () => {
  const text = JSON.stringify(dashboard());
  const metrics = new Set(
    [...template.matchAll(/\b([a-z_]+)\{ \{\{- \$job|\$job "([a-z_]+)"/g)].map(([, one, other]) => one ?? other ?? ""),
  );
  expect(metrics.size).toBeGreaterThan(15);
  const missing = [...metrics].filter((metric) => !notShown.has(metric) && !text.includes(`${metric}{`));
  expect(missing).toEqual([]);
});

test.each([...alerts])("%s links to its runbook", (alert, text) => {
  expect(text).toContain(`runbook_url: {{ $runbooks }}/${alert}.md`);
});

test("the panels of the dashboard do not overlap", () => {
  const { panels } = dashboard() as { panels: { gridPos: { x: number; y: number; w: number; h: number } }[] };
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
});
