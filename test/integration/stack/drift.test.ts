/** Drift checks: on a schedule and on request, reported and corrected, without disturbing the Stack. */
import { expect, test } from "bun:test";
import { driftRequestAnnotation, type Stack, type Update } from "@pko/api";
import { updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { condition, StackScene, testTimeoutMs } from "./scene.ts";

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
    await using scene = await StackScene.open();
    await scene.program("program");
    scene.simulator.script.update = (update) => (isCheck(update) ? { end: "never" } : { end: "succeeded" });
    await scene.stack("web", { driftDetection: { intervalSeconds: 60 } });
    const first = await scene.isReady("web", "1");
    const planned = await scene.becomes("web", "waiting", ({ status }) => status?.next !== undefined);
    expect(planned.status?.next?.what).toBe("the drift check");
    scene.jump(61_000);
    const checking = await scene.becomes("web", "checked", ({ status }) => status?.currentUpdate !== undefined);
    expect(condition(checking, "Ready")).toEqual(condition(first, "Ready"));
    expect(checking.status?.waiting).toBeUndefined();
    await waitFor(() => scene.runs.length === 2, { what: "the Update of the check to be seen" });
    expect(scene.simulator.runs.at(-1)?.spec).toMatchObject({ type: "refresh", previewOnly: true });

    scene.simulator.script.update = () => ({ end: "succeeded", drift });
    const found = await scene.becomes("web", "drifted", isDrifted("True"));
    expect(found.status?.drift).toMatchObject({ ...drift, updateName: checking.status?.currentUpdate?.name ?? "" });
    expect(condition(found, "Drifted")?.message).toContain("ConfigMap settings (data.mode)");
    expect(condition(found, "Ready")).toEqual(condition(first, "Ready"));
    expect(found.status?.lastUpdate).toEqual(first.status?.lastUpdate ?? {});
    const isCounted = (): boolean => {
      const metrics = scene.operator.metrics.expose();
      const isGauged = /^stacks_drifted\{.*name="web"\} 1$/m.test(metrics);
      return isGauged && metrics.includes('stack_drift_checks_total{result="drifted"} 1');
    };
    await waitFor(isCounted, { what: "the check to be counted, which follows the status" });

    scene.simulator.script.update = () => ({ end: "succeeded", drift: none });
    scene.jump(61_000);
    await scene.becomes("web", "without drift", isDrifted("False"));
    expect(scene.runs).toEqual(["up@1", "refresh@1", "refresh@1"]);
    const isReleased = async (): Promise<boolean> =>
      (await scene.client.list(updates, { namespace: scene.namespace })).items.every(
        ({ metadata }) => !metadata.finalizers?.length,
      );
    await waitFor(isReleased, { what: "the checks to lose their finalizer" });
  },
  testTimeoutMs,
);

test(
  "drift is corrected once for each check that finds it",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    let found = drift;
    let correction: { readonly end: "succeeded" | "never" } = { end: "succeeded" };
    scene.simulator.script.update = (update) => (isCheck(update) ? { end: "succeeded", drift: found } : correction);
    await scene.stack("web", { driftDetection: { intervalSeconds: 60, action: "Correct" } });
    await scene.isReady("web", "1");
    scene.jump(61_000);
    const isCorrected = ({ status }: Stack): boolean => status?.drift?.corrected !== undefined;
    const corrected = await scene.becomes("web", "corrected", isCorrected);
    expect(scene.simulator.runs.map(({ spec }) => [spec.type, spec.refresh ?? false])).toEqual([
      ["up", false],
      ["refresh", false],
      ["up", true],
    ]);
    expect(condition(corrected, "Drifted")).toMatchObject({ status: "False", reason: "NoDrift" });
    await scene.fence();
    expect(scene.runs.length).toBe(3);

    // The update did not help: the next check finds the same.
    correction = { end: "never" };
    scene.jump(61_000);
    const isRepeated = (stack: Stack): boolean =>
      isDrifted("True")(stack) && (condition(stack, "Drifted")?.message.includes("corrected the same") ?? false);
    await scene.becomes("web", "drifted again", isRepeated);
    found = { resources: [] };
    correction = { end: "succeeded" };
    await waitFor(() => scene.runs.length === 5);
    await scene.becomes("web", "corrected again", isDrifted("False"));
    scene.jump(61_000);
    await waitFor(() => scene.runs.length === 6);
    await scene.becomes("web", "clean", ({ status }) => status?.drift !== undefined && !status.drift.corrected);
    expect(scene.runs).toEqual(["up@1", "refresh@1", "up@1", "refresh@1", "up@1", "refresh@1"]);
  },
  testTimeoutMs,
);

test(
  "a check runs on request, and its failure leaves the Stack ready",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    await scene.stack("web");
    await scene.isReady("web", "1");
    scene.simulator.script.update = () => ({ end: "failed", message: "error: no such host" });
    await scene.annotate("web", { [driftRequestAnnotation]: "first" });
    const failed = await scene.becomes("web", "failed to check", isDrifted("Unknown"));
    expect(condition(failed, "Drifted")?.message).toBe("The drift check failed: error: no such host");
    expect(condition(failed, "Ready")?.status).toBe("True");
    expect(failed.status?.lastUpdate).toMatchObject({ type: "up", state: "succeeded" });

    scene.simulator.script.update = () => ({ end: "succeeded", drift: none });
    await scene.annotate("web", { [driftRequestAnnotation]: "second" });
    const clean = await scene.becomes("web", "checked", isDrifted("False"));
    expect(clean.status?.drift).toMatchObject({ request: "second" });
    await scene.fence();
    expect(scene.runs).toEqual(["up@1", "refresh@1", "refresh@1"]);
  },
  testTimeoutMs,
);

test(
  "a check gives way to an update, and to the deletion of the Stack",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    await scene.stack("web", { destroyOnFinalize: true });
    await scene.isReady("web", "1");
    scene.simulator.script.update = (update) => (isCheck(update) ? { end: "never" } : { end: "succeeded" });
    await scene.annotate("web", { [driftRequestAnnotation]: "first" });
    await waitFor(() => scene.runs.length === 2);
    await scene.program("program", "two");
    await scene.isReady("web", "2");
    // The request is still to be handled.
    await waitFor(() => scene.runs.length === 4);
    await scene.delete("web");
    await scene.isDeleted("web");
    expect(scene.runs).toEqual(["up@1", "refresh@1", "up@2", "refresh@2", "destroy@2"]);
    await waitFor(async () => (await scene.client.list(updates, { namespace: scene.namespace })).items.length === 0);
  },
  testTimeoutMs,
);
