import { describe, expect, test } from "bun:test";

import { normalizeUpdate } from "./update.ts";

const update = (spec: object) => ({
  metadata: { name: "web-1", namespace: "team" },
  spec: { workspaceName: "web", stackName: "dev", type: "up", ...spec },
});

describe("an Update", () => {
  test("has defaults", () => {
    expect(normalizeUpdate(update({}))).toEqual({
      ok: true,
      advice: [],
      value: {
        name: "web-1",
        namespace: "team",
        workspaceName: "web",
        stackName: "dev",
        type: "up",
        message: "",
        refresh: false,
        targets: [],
        targetDependents: false,
        replace: [],
        expectNoChanges: false,
        expectNoRefreshChanges: false,
        continueOnError: false,
        remove: false,
        runProgram: false,
        previewOnly: false,
        savePlan: false,
        clearPendingCreates: false,
        timeouts: {},
      },
    });
  });

  test("has the TTL of its spec", () => {
    expect(normalizeUpdate(update({ ttlAfterCompleted: "24h" }))).toMatchObject({
      value: { ttlAfterCompletedMs: 86_400_000 },
    });
  });

  const bad: [string, object, string][] = [
    ["without a workspace", { workspaceName: "" }, "spec.workspaceName"],
    ["without a stack", { stackName: "" }, "spec.stackName"],
    ["with a stack that looks like an option", { stackName: "--help" }, "spec.stackName"],
    ["of an unknown type", { type: "import" }, "spec.type"],
    ["with an invalid TTL", { ttlAfterCompleted: "a day" }, "spec.ttlAfterCompleted"],
    ["with negative parallelism", { parallel: -1 }, "spec.parallel"],
    ["of type up that clears pending creates", { clearPendingCreates: true }, "spec.clearPendingCreates"],
    [
      "of type refresh that clears pending creates in a preview",
      { type: "refresh", previewOnly: true, clearPendingCreates: true },
      "spec.clearPendingCreates",
    ],
    ["without time to run", { timeoutSeconds: 0 }, "spec.timeoutSeconds"],
    ["with a target that is not a list", { target: "urn:a" }, "spec.target"],
  ];
  for (const [what, spec, field] of bad) {
    test(`${what} has a problem in ${field}`, () => {
      const outcome = normalizeUpdate(update(spec));
      expect(outcome.ok ? [] : outcome.problems.map((problem) => problem.field)).toEqual([field]);
    });
  }
});
