/** Checks for drift: on a schedule and on request, reported and corrected, without disturbing the Stack. */
import { expect, test } from "bun:test";
import { driftRequestAnnotation, type Stack, type Update } from "@pko/api";
import { updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { condition, Stage, testTimeoutMs } from "./harness.ts";

const urn = "urn:pulumi:dev::demo::kubernetes:core/v1:ConfigMap::settings";
const drift = { resources: [{ urn, operation: "update", properties: ["data.mode"] }] };
const none = { resources: [] };

const isCheck = ({ spec }: Update): boolean => spec?.type === "refresh" && spec.previewOnly === true;

function isDrifted(status: "True" | "False" | "Unknown"): (stack: Stack) => boolean {
  return (stack) => condition(stack, "Drifted")?.status === status;
}

test(
  "drift is reported within an interval, and the Stack stays ready meanwhile",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    stage.simulator.script.update = (update) => (isCheck(update) ? { end: "never" } : { end: "succeeded" });
    await stage.stack("web", { driftDetection: { intervalSeconds: 60 } });
    const first = await stage.isReady("web", "1");
    const planned = await stage.becomes("web", "waiting", ({ status }) => status?.next !== undefined);
    expect(planned.status?.next?.what).toBe("the check for drift");
    stage.jump(61_000);
    const checking = await stage.becomes("web", "checked", ({ status }) => status?.currentUpdate !== undefined);
    expect(condition(checking, "Ready")).toEqual(condition(first, "Ready"));
    expect(checking.status?.waiting).toBeUndefined();
    expect(stage.simulator.runs.at(-1)?.spec).toMatchObject({ type: "refresh", previewOnly: true });

    stage.simulator.script.update = () => ({ end: "succeeded", drift });
    const found = await stage.becomes("web", "drifted", isDrifted("True"));
    expect(found.status?.drift).toMatchObject({ ...drift, updateName: checking.status?.currentUpdate?.name ?? "" });
    expect(condition(found, "Drifted")?.message).toContain("ConfigMap settings (data.mode)");
    expect(condition(found, "Ready")).toEqual(condition(first, "Ready"));
    expect(found.status?.lastUpdate).toEqual(first.status?.lastUpdate ?? {});
    expect(stage.operator.metrics.expose()).toContain('stack_drift_checks_total{result="drifted"} 1');
    expect(stage.operator.metrics.expose()).toMatch(/^stacks_drifted\{.*name="web"\} 1$/m);

    stage.simulator.script.update = () => ({ end: "succeeded", drift: none });
    stage.jump(61_000);
    await stage.becomes("web", "without drift", isDrifted("False"));
    expect(stage.runs).toEqual(["up@1", "refresh@1", "refresh@1"]);
    const isReleased = async (): Promise<boolean> =>
      (await stage.client.list(updates, { namespace: stage.namespace })).items.every(
        ({ metadata }) => !metadata.finalizers?.length,
      );
    await waitFor(isReleased, { what: "the checks to lose their finalizer" });
  },
  testTimeoutMs,
);

test(
  "drift is corrected once for each check that finds it",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    let found = drift;
    let correction: { readonly end: "succeeded" | "never" } = { end: "succeeded" };
    stage.simulator.script.update = (update) => (isCheck(update) ? { end: "succeeded", drift: found } : correction);
    await stage.stack("web", { driftDetection: { intervalSeconds: 60, action: "Correct" } });
    await stage.isReady("web", "1");
    stage.jump(61_000);
    const isCorrected = ({ status }: Stack): boolean => status?.drift?.corrected !== undefined;
    const corrected = await stage.becomes("web", "corrected", isCorrected);
    expect(stage.simulator.runs.map(({ spec }) => [spec.type, spec.refresh ?? false])).toEqual([
      ["up", false],
      ["refresh", false],
      ["up", true],
    ]);
    expect(condition(corrected, "Drifted")).toMatchObject({ status: "False", reason: "NoDrift" });
    await stage.fence();
    expect(stage.runs.length).toBe(3);

    // The update did not help: the next check finds the same.
    correction = { end: "never" };
    stage.jump(61_000);
    const isRepeated = (stack: Stack): boolean =>
      isDrifted("True")(stack) && (condition(stack, "Drifted")?.message.includes("corrected the same") ?? false);
    await stage.becomes("web", "drifted again", isRepeated);
    found = { resources: [] };
    correction = { end: "succeeded" };
    await waitFor(() => stage.runs.length === 5);
    await stage.isReady("web");
    stage.jump(61_000);
    await waitFor(() => stage.runs.length === 6);
    await stage.becomes("web", "clean", ({ status }) => status?.drift !== undefined && !status.drift.corrected);
    expect(stage.runs).toEqual(["up@1", "refresh@1", "up@1", "refresh@1", "up@1", "refresh@1"]);
  },
  testTimeoutMs,
);

test(
  "a check runs on request, and its failure leaves the Stack ready",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    await stage.stack("web");
    await stage.isReady("web", "1");
    stage.simulator.script.update = () => ({ end: "failed", message: "error: no such host" });
    await stage.annotate("web", { [driftRequestAnnotation]: "first" });
    const failed = await stage.becomes("web", "failed to check", isDrifted("Unknown"));
    expect(condition(failed, "Drifted")?.message).toBe("The check for drift failed: error: no such host");
    expect(condition(failed, "Ready")?.status).toBe("True");
    expect(failed.status?.lastUpdate).toMatchObject({ type: "up", state: "succeeded" });

    stage.simulator.script.update = () => ({ end: "succeeded", drift: none });
    await stage.annotate("web", { [driftRequestAnnotation]: "second" });
    const clean = await stage.becomes("web", "checked", isDrifted("False"));
    expect(clean.status?.drift).toMatchObject({ request: "second" });
    await stage.fence();
    expect(stage.runs).toEqual(["up@1", "refresh@1", "refresh@1"]);
  },
  testTimeoutMs,
);

test(
  "a check gives way to an update, and to the deletion of the Stack",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    await stage.stack("web", { destroyOnFinalize: true });
    await stage.isReady("web", "1");
    stage.simulator.script.update = (update) => (isCheck(update) ? { end: "never" } : { end: "succeeded" });
    await stage.annotate("web", { [driftRequestAnnotation]: "first" });
    await waitFor(() => stage.runs.length === 2);
    await stage.program("program", "two");
    await stage.isReady("web", "2");
    // The request is still to be handled.
    await waitFor(() => stage.runs.length === 4);
    await stage.delete("web");
    await stage.isDeleted("web");
    expect(stage.runs).toEqual(["up@1", "refresh@1", "up@2", "refresh@2", "destroy@2"]);
    await waitFor(async () => (await stage.client.list(updates, { namespace: stage.namespace })).items.length === 0);
  },
  testTimeoutMs,
);
