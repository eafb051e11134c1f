import { StackSpec } from "@pko/api";
import { describe, expect, test } from "bun:test";

import { aStack } from "../testing/objects.ts";
import { childStack } from "./child-stack.ts";

const git = { projectRepo: "https://github.com/acme/web", branch: "main" };
const parent = aStack("web", {}, git);

describe("the child Stack of a preview", () => {
  test("previews the same program, configuration and Pulumi stack", () => {
    const { spec, metadata } = childStack(
      { ...parent, metadata: { ...parent.metadata, uid: "u1" } },
      undefined,
      "ab12c",
    );
    expect(spec).toEqual({ stack: "acme/web/dev", ...git, preview: true, useLocalStackOnly: true, maxFailures: 1 });
    expect(metadata).toMatchObject({ name: "web-preview-ab12c", ownerReferences: [{ name: "web", uid: "u1" }] });
  });

  test.each([
    ["feature/cache", { branch: "feature/cache" }],
    ["refs/tags/v1.0", { tag: "refs/tags/v1.0" }],
    ["0123456789abcdef0123456789abcdef01234567", { commit: "0123456789abcdef0123456789abcdef01234567" }],
  ])("at the ref %s instead of the branch", (ref, revision) => {
    const { branch, tag, commit } = childStack(parent, ref, "x").spec;
    expect({ branch, tag, commit }).toEqual({ branch: undefined, tag: undefined, commit: undefined, ...revision });
  });

  test("cannot take a ref if the program is not in Git", () => {
    expect(() => childStack(aStack("web"), "main", "x")).toThrow("--ref needs a Stack whose program comes from Git");
  });

  test("never destroys, waits, retries, needs an approval or starts another Stack", () => {
    const control = {
      approval: { required: "Always" },
      destroyOnFinalize: true,
      driftDetection: { intervalSeconds: 60 },
      prerequisites: [{ name: "db" }],
      protect: true,
      suspend: true,
      updateWindows: [{ schedule: "0 0 * * *", durationSeconds: 60 }],
      continueResyncOnCommitMatch: true,
    } as const;
    const { spec } = childStack(aStack("web", {}, control as unknown as Partial<StackSpec>), undefined, "x");
    expect(Object.keys(spec).filter((field) => field in control)).toEqual([]);
  });

  test("has a name that fits, also for a Stack with a long one", () => {
    const { name = "" } = childStack(aStack("a".repeat(63)), undefined, "ab12c").metadata;
    expect(name).toMatch(/^a+-preview-ab12c$/);
    expect(name.length).toBeLessThanOrEqual(50);
  });

  test("has a valid name if that of the Stack is cut after a dot", () => {
    for (let length = 30; length <= 50; length += 1) {
      const { name } = childStack(aStack(`${"a".repeat(length)}.b`), undefined, "ab12c").metadata;
      expect(name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    }
  });
});

test("every field of a Stack is copied or left out on purpose", () => {
  const leftOut = new Set([
    "approval",
    "continueResyncOnCommitMatch",
    "destroyOnFinalize",
    "driftDetection",
    "expectNoRefreshChanges",
    "failedUpdatesHistoryLimit",
    "initOnCreate",
    "pathFilters",
    "prerequisites",
    "protect",
    "pullRequests",
    "report",
    "resyncFrequencySeconds",
    "retryMaxBackoffDurationSeconds",
    "retryOnUpdateConflict",
    "runProgram",
    "successfulUpdatesHistoryLimit",
    "suspend",
    "updateWindows",
    "workspaceReclaimPolicy",
  ]);
  const all = Object.fromEntries(Object.keys(StackSpec.properties).map((field) => [field, "x"]));
  const { spec } = childStack(aStack("web", {}, all), undefined, "x");
  const dropped = Object.keys(all).filter((field) => !(field in spec));
  expect(dropped.filter((field) => !leftOut.has(field))).toEqual([]);
  expect(Object.keys(spec).filter((field) => leftOut.has(field))).toEqual([]);
});
