import { describe, expect, test } from "bun:test";
import { triggerReasonAnnotation, type Update } from "@pko/api";

import { updateFacts } from "../history/update-facts.ts";
import { generated } from "../testing/generated.ts";
import { updateObject, type UpdateRequest } from "./update.ts";

describe("the Update", () => {
  const trigger = { type: "up", generation: 1, revision: "c", reconcileRequest: "", inputs: "" } as const;

  test("records its trigger", () => {
    const { stack, spec, workspace } = generated({
      destroyOnFinalize: true,
      targets: ["urn:a"],
      refresh: true,
      expectNoRefreshChanges: true,
      runProgram: true,
    });
    const update = updateObject({ stack, spec, workspace, trigger, reason: "first" });
    expect(updateFacts(update)).toMatchObject({ state: "unfinished", hasFinalizer: true, trigger, type: "up" });
    expect(update.spec).toMatchObject({
      refresh: true,
      expectNoRefreshChanges: true,
      target: ["urn:a"],
      ttlAfterCompleted: "86400s",
    });
    const destroy = destroyOf({ stack, spec, workspace });
    expect(destroy).toEqual({
      message: "Stack default/web: the deletion of the Stack",
      workspaceName: "web",
      stackName: "dev",
      type: "destroy",
      runProgram: true,
      ttlAfterCompleted: "86400s",
    });
  });

  const reasons: readonly (readonly [Partial<UpdateRequest>, string])[] = [
    [{ reason: "first" }, "the first update"],
    [{ reason: "revision" }, "the new revision c"],
    [{ reason: "request", trigger: { ...trigger, reconcileRequest: "please" } }, "the reconcile request please"],
    [{ reason: "retry" }, "a retry"],
    [{ reason: "drift" }, "the correction of drift"],
    [{ reason: "drift", trigger: { ...trigger, type: "refresh" } }, "the drift check"],
    [
      { reason: "drift", trigger: { ...trigger, type: "refresh", driftRequest: "now" } },
      "the drift check, requested as now",
    ],
  ];
  for (const [request, text] of reasons) {
    test(`shows that it runs for ${text}`, () => {
      const { metadata } = updateObject({ ...generated({}), trigger, reason: "first", ...request });
      expect(metadata.annotations?.[triggerReasonAnnotation]).toBe(text);
    });
  }

  const destroyOf = (of: Pick<UpdateRequest, "stack" | "spec" | "workspace">): Update["spec"] =>
    updateObject({ ...of, trigger: { ...trigger, type: "destroy" }, reason: "destroy" }).spec;

  test("of a destroy follows the template", () => {
    const target = ["urn:b"];
    const template = (spec: object): ReturnType<typeof generated> =>
      generated({ destroyOnFinalize: true, targets: ["urn:a"], updateTemplate: { spec } });
    expect(destroyOf(template({ remove: true, message: "bye" }))).toMatchObject({ remove: true, message: "bye" });
    expect(destroyOf(template({ refresh: true }))).toMatchObject({ refresh: true });
    expect(destroyOf(template({ target }))).toMatchObject({ target });
    expect(destroyOf(template({ parallel: 2 }))).not.toHaveProperty("target");
  });

  test("has the timeouts of the Stack, which the template may change", () => {
    const timeouts = { updateTimeoutSeconds: 60, silenceTimeoutSeconds: 30 };
    const update = (of: ReturnType<typeof generated>): Update["spec"] =>
      updateObject({ ...of, trigger, reason: "first" }).spec;
    expect(update(generated(timeouts))).toMatchObject({ timeoutSeconds: 60, silenceTimeoutSeconds: 30 });
    expect(destroyOf(generated({ ...timeouts, destroyOnFinalize: true }))).toMatchObject({ timeoutSeconds: 60 });
    const changed = generated({ ...timeouts, updateTemplate: { spec: { timeoutSeconds: 90 } } });
    expect(update(changed)).toMatchObject({ timeoutSeconds: 90, silenceTimeoutSeconds: 30 });
    expect(update(generated({}))).not.toHaveProperty("timeoutSeconds");
  });

  test("of a destroy keeps the empty Pulumi stack and does not refresh by default", () => {
    const destroy = destroyOf(generated({ destroyOnFinalize: true, refresh: true }));
    expect(destroy).not.toHaveProperty("remove");
    expect(destroy).not.toHaveProperty("refresh");
  });

  test("of a drift check compares what an update would refresh, and is kept until the next but one", () => {
    const driftDetection = { intervalSeconds: 600, action: "Correct" as const };
    const updateTemplate = { spec: { parallel: 2, replace: ["urn:b"], refresh: true, remove: true } };
    const of = generated({ targets: ["urn:a"], refresh: true, driftDetection, updateTemplate });
    const check = updateObject({ ...of, trigger: { ...trigger, type: "refresh" }, reason: "drift" });
    expect(check.spec).toEqual({
      message: "Stack default/web: the drift check",
      workspaceName: "web",
      stackName: "dev",
      type: "refresh",
      previewOnly: true,
      parallel: 2,
      target: ["urn:a"],
      ttlAfterCompleted: "1200s",
    });
    expect(updateFacts(check)).toMatchObject({ isDriftCheck: true, refreshes: false });
  });

  test("refreshes if drift is known and has to be corrected", () => {
    const driftDetection = { intervalSeconds: 600, action: "Correct" as const };
    const { stack, ...of } = generated({ refresh: true, expectNoRefreshChanges: true, driftDetection });
    const resources = [{ urn: "urn:a", operation: "delete" }];
    const drifted = {
      type: "Drifted",
      status: "True" as const,
      reason: "DriftDetected",
      message: "",
      lastTransitionTime: "",
    };
    const status = { drift: { checkedAt: "", resources }, conditions: [drifted] };
    const update = updateObject({ ...of, stack: { ...stack, status }, trigger, reason: "drift" });
    expect(update.spec).toMatchObject({
      type: "up",
      refresh: true,
      message: "Stack default/web: the correction of drift",
    });
    expect(update.spec).not.toHaveProperty("expectNoRefreshChanges");
    expect(updateFacts(update).refreshes).toBe(true);
  });
});
