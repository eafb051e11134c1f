/** Every runbook has the same parts, with commands and what they print. */
import { readdirSync } from "node:fs";

import { describe, expect, test } from "bun:test";

import { commandsIn } from "./commands.ts";
import { parseRunbook, readRunbook, runbookFolder } from "./runbook.ts";

const alerts = readdirSync(runbookFolder)
  .map((file) => file.replace(/\.md$/, ""))
  .filter((name) => name.startsWith("Pulumi"));

test("there are runbooks", () => {
  expect(alerts.length).toBeGreaterThan(20);
});

describe.each(alerts)("the runbook of %s", (alert) => {
  test("explains the alert, and shows how to find its cause, to fix it, and to verify that", () => {
    const { "Find the cause": cause, Fix: fix, Verify: verify } = readRunbook(alert);
    for (const part of [cause, fix, verify]) expect(commandsIn(part)).not.toEqual([]);
    for (const part of [cause, verify]) expect(part).toMatch(/^```text\n/m);
  });

  test("requests an update with another value each time, because the same value starts none in the next incident", () => {
    const requests = commandsIn(readRunbook(alert).Fix).filter((line) => line.includes("reconciliation-request"));
    expect(requests.filter((line) => !line.includes("reconciliation-request=$("))).toEqual([]);
  });
});

test("a page without a part is no runbook", () => {
  expect(() => parseRunbook("# A\n\n## What it means\n\n## Fix\n")).toThrow("What it means, Fix");
});
