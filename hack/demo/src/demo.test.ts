import { describe, expect, test } from "bun:test";

import type { Stack, Update, Workspace } from "@pko/api";

import { exampleNames, missingFor, readExample } from "./example.ts";
import { withImage } from "./install.ts";
import { isSince, outputLines, resourceLine, sentenceOf } from "./narrate.ts";

const stack = (status: Stack["status"]): Stack => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "shop", generation: 1 },
  spec: { stack: "dev" },
  ...(status && { status }),
});

const time = "2026-01-01T00:00:00Z";
const holds = (type: string, status: "True" | "False", message: string) =>
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
  status: { conditions: [holds("Ready", "False", message)] },
});

describe("what is said of a Stack", () => {
  const cases: [string, Parameters<typeof sentenceOf>[0], string][] = [
    ["that nobody has seen", { stack: stack(undefined) }, "seen by nobody yet"],
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
      { stack: stack({ conditions: [holds("Ready", "True", "")] }), update },
      "ready: up succeeded (3 created, 1 unchanged)",
    ],
    [
      "that cannot go on",
      { stack: stack({ conditions: [holds("Stalled", "True", "spec.branch: no such branch")] }) },
      "stalled: spec.branch: no such branch",
    ],
  ];
  for (const [what, scene, sentence] of cases) test(what, () => expect(sentenceOf(scene)).toBe(sentence));
});

describe("what is said of the pod's log", () => {
  const cases: [string, object, string | undefined][] = [
    ["a new resource", { message: "resource finished", op: "create", name: "a", type: "b:c:D" }, "+ a  b:c:D"],
    ["a failed one", { message: "resource failed", op: "create", name: "a", type: "b:c:D" }, "✗ a  b:c:D"],
    ["the program's words", { level: "error", message: "program said", text: "boom" }, "boom"],
    ["a warning", { level: "warn", message: "program said", text: "deprecated" }, undefined],
    ["the page to follow", { message: "page opened", url: "https://x" }, "follow it at https://x"],
    ["anything else", { message: "agent started" }, undefined],
  ];
  for (const [what, line, text] of cases) test(what, () => expect(resourceLine(JSON.stringify(line))).toBe(text));

  test("what is not of the agent", () => expect(resourceLine("plain text")).toBeUndefined());

  test("what is of an earlier run in the same second", () => {
    const line = (at: string): string => JSON.stringify({ time: at, message: "resource finished" });
    const since = new Date("2026-01-01T00:00:00.500Z");
    expect(isSince(line("2026-01-01T00:00:00.499Z"), since)).toBe(false);
    expect(isSince(line("2026-01-01T00:00:00.500Z"), since)).toBe(true);
    expect(isSince("plain text", since)).toBe(false);
  });
});

test("outputs stand in columns, by name", () => {
  expect(outputLines({ port: 80, address: "https://x" })).toEqual(["address  https://x", "port     80"]);
});

test("the released image gives way to this clone's, wherever it is named", () => {
  const text =
    "image: docker.io/pulumi/pulumi-kubernetes-operator:v1.0.0-rc.1\nvalue: docker.io/pulumi/pulumi-kubernetes-operator:v1.0.0-rc.1";
  expect(withImage(text, "mine:1")).toBe("image: mine:1\nvalue: mine:1");
});

describe("examples", () => {
  test("each has a Stack, and those that keep their state in files run here", () => {
    expect(exampleNames()).toContain("program");
    expect(missingFor(readExample("program"))).toBeUndefined();
    for (const name of ["custom-image", "git", "oidc"]) {
      expect(missingFor(readExample(name))).toContain(`the example ${name} needs more than a cluster`);
    }
  });

  test("one that does not exist is answered with those that do", () => {
    expect(() => readExample("../secrets")).toThrow("there is no example ../secrets: choose from");
  });
});
