import { describe, expect, test } from "bun:test";

import type { Stack, Update, Workspace } from "@pko/api";

import { exampleNames, missingFor, readExample } from "./example.ts";
import { isSince, outputLines, resourceLine, progressLine } from "./progress-lines.ts";

const stack = (status: Stack["status"]): Stack => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "shop", generation: 1 },
  spec: { stack: "dev" },
  ...(status && { status }),
});

const time = "2026-01-01T00:00:00Z";
const condition = (type: string, status: "True" | "False", message: string) =>
  ({ type, status, reason: "Some", message, lastTransitionTime: time, observedGeneration: 1 }) as never;

const update: Update = {
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  metadata: { name: "shop-1" },
  spec: { type: "up" },
  status: {
    startTime: time,
    endTime: "2026-01-01T00:00:02Z",
    summary: "3 created, 1 unchanged",
  },
};

const workspace = (message: string): Workspace => ({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Workspace",
  metadata: { name: "shop" },
  spec: {},
  status: { conditions: [condition("Ready", "False", message)] },
});

describe("the progress line of a Stack", () => {
  const cases: [string, Parameters<typeof progressLine>[0], string][] = [
    ["that was not reconciled yet", { stack: stack(undefined) }, "waiting for the operator"],
    [
      "that waits",
      { stack: stack({ waiting: { for: "the Stack network", since: time } }) },
      "waiting for the Stack network",
    ],
    [
      "whose pod starts",
      { stack: stack({ waiting: { for: "the workspace", since: time } }), workspace: workspace("pulling the image") },
      "workspace: pulling the image",
    ],
    ["whose update runs", { stack: stack({ currentUpdate: { name: "shop-1" } }), update }, "up is running"],
    [
      "that is ready",
      { stack: stack({ conditions: [condition("Ready", "True", "")] }), update },
      "ready: up succeeded (3 created, 1 unchanged)",
    ],
    [
      "that is stalled",
      { stack: stack({ conditions: [condition("Stalled", "True", "spec.branch: no such branch")] }) },
      "stalled: spec.branch: no such branch",
    ],
  ];
  for (const [what, scene, sentence] of cases) test(what, () => expect(progressLine(scene)).toBe(sentence));
});

describe("lines of the workspace pod's log", () => {
  const cases: [string, object, string | undefined][] = [
    ["a new resource", { message: "resource finished", op: "create", name: "a", type: "b:c:D" }, "+ a  b:c:D"],
    ["a failed one", { message: "resource failed", op: "create", name: "a", type: "b:c:D" }, "✗ a  b:c:D"],
    ["an error of the program", { level: "error", message: "program output", text: "boom" }, "boom"],
    ["a warning", { level: "warn", message: "program output", text: "deprecated" }, undefined],
    ["the URL of the update", { message: "Pulumi Cloud link", url: "https://x" }, "details: https://x"],
    ["anything else", { message: "agent started" }, undefined],
  ];
  for (const [what, line, text] of cases) test(what, () => expect(resourceLine(JSON.stringify(line))).toBe(text));

  test("a line that is not from the agent", () => expect(resourceLine("plain text")).toBeUndefined());

  test("a line of an earlier run in the same second", () => {
    const line = (at: string): string => JSON.stringify({ time: at, message: "resource finished" });
    const since = new Date("2026-01-01T00:00:00.500Z");
    expect(isSince(line("2026-01-01T00:00:00.499Z"), since)).toBe(false);
    expect(isSince(line("2026-01-01T00:00:00.500Z"), since)).toBe(true);
    expect(isSince("plain text", since)).toBe(false);
  });
});

test("outputs are aligned and sorted by name", () => {
  expect(outputLines({ port: 80, address: "https://x" })).toEqual(["address  https://x", "port     80"]);
});

describe("examples", () => {
  test("each has a Stack, and those with a file backend run on the local cluster", () => {
    expect(exampleNames()).toContain("program");
    expect(missingFor(readExample("program"))).toBeUndefined();
    for (const name of ["custom-image", "git", "oidc"]) {
      expect(missingFor(readExample(name))).toContain(`the example ${name} needs more than a cluster`);
    }
  });

  test("an unknown name lists the available examples", () => {
    expect(() => readExample("../secrets")).toThrow("there is no example ../secrets: choose from");
  });
});
