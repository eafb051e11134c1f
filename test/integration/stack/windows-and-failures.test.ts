/** Update windows on a clock that the test moves, and the limit of failures. */
import { expect, test } from "bun:test";
import { ignoreWindowsUntilAnnotation } from "@pko/api";
import { timestamp } from "@pko/kube";

import { reasonOf, StackScene, testTimeoutMs } from "./scene.ts";

const hour = 3_600_000;

/** A window of an hour that opens at least five hours from now, and its next opening. */
function laterWindow(now: number) {
  const opening = Math.ceil(now / hour) * hour + 5 * hour;
  const schedule = `0 ${new Date(opening).getUTCHours()} * * *`;
  return { updateWindows: [{ schedule, durationSeconds: 3600 }], opening };
}

test(
  "an update waits for its window, starts when it opens, and waits for the next one after it has closed",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    const { updateWindows, opening } = laterWindow(scene.clock.now());
    await scene.stack("web", { updateWindows });
    const waits = async (what: string, at: number) =>
      await scene.becomes(
        "web",
        `waiting with ${what}`,
        (stack) => reasonOf(stack) === "OutsideUpdateWindow" && stack.status?.next?.time === timestamp(at),
      );
    expect((await waits("its first update", opening)).status?.next?.what).toBe("the up for the first update");
    expect(scene.runs).toEqual([]);
    scene.jump(opening - scene.clock.now());
    await scene.isReady("web");
    expect(scene.runs).toHaveLength(1);

    scene.jump(2 * hour);
    await scene.program("program", "two");
    await waits("a new program", opening + 24 * hour);
    expect(scene.runs).toHaveLength(1);

    await scene.annotate("web", { [ignoreWindowsUntilAnnotation]: timestamp(scene.clock.now() + hour) });
    await scene.isReady("web", "2");
    expect(scene.runs).toHaveLength(2);
  },
  testTimeoutMs,
);

test(
  "the destroy of a deleted Stack waits for its window",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    const spec = { destroyOnFinalize: true };
    await scene.stack("web", spec);
    await scene.isReady("web");
    const { updateWindows, opening } = laterWindow(scene.clock.now());
    await scene.stack("web", { ...spec, updateWindows });
    await scene.delete("web");
    await scene.becomes(
      "web",
      "waiting with its destroy",
      (stack) => stack.status?.next?.what === "the destroy for the deletion of the Stack",
    );
    expect(scene.runs).toHaveLength(1);
    scene.jump(opening - scene.clock.now());
    await scene.isDeleted("web");
    expect(scene.runs.map((run) => run.split("@")[0])).toEqual(["up", "destroy"]);
  },
  testTimeoutMs,
);

test(
  "after maxFailures failures nothing is retried until a request, and one event reports it",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    scene.simulator.script.update = () => ({ end: "failed", message: "no such bucket" });
    await scene.stack("web", { maxFailures: 2 });
    await scene.becomes("web", "failed once", ({ status }) =>
      Boolean(status?.conditions?.[0]?.message.includes("failed (attempt 1 of 2): no such bucket")),
    );
    scene.jump(24 * hour);
    const exhausted = await scene.becomes("web", "exhausted", (stack) => reasonOf(stack) === "RetriesExhausted");
    expect(exhausted.status?.conditions?.[0]?.message).toContain("failed 2 of 2 times, so it is not retried");
    expect(exhausted.status?.next).toBeUndefined();
    // The event follows the status, and the jump may end a pass.
    await scene.events("StackRetriesExhausted");
    scene.jump(24 * hour);
    await scene.fence();
    expect(scene.runs.filter((run) => run.startsWith("up"))).toHaveLength(2);

    scene.simulator.script.update = () => ({ end: "succeeded" });
    await scene.annotate("web", { "pulumi.com/reconciliation-request": "again" });
    await scene.isReady("web");
    expect(await scene.events("StackRetriesExhausted")).toHaveLength(1);
  },
  testTimeoutMs,
);

test(
  "after maxFailures failures a destroy is not retried until a request",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    const spec = { destroyOnFinalize: true, maxFailures: 1 };
    await scene.stack("web", spec);
    await scene.isReady("web");
    scene.simulator.script.update = () => ({ end: "failed", message: "bucket not empty" });
    await scene.delete("web");
    await scene.becomes("web", "exhausted", (stack) => reasonOf(stack) === "RetriesExhausted");
    scene.jump(24 * hour);
    await scene.fence();
    expect(scene.runs.filter((run) => run.startsWith("destroy"))).toHaveLength(1);
    scene.simulator.script.update = () => ({ end: "succeeded" });
    await scene.annotate("web", { "pulumi.com/reconciliation-request": "again" });
    await scene.isDeleted("web");
  },
  testTimeoutMs,
);
