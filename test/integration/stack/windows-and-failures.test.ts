/** Update windows on a clock that the test moves, and the limit of failures. */
import { expect, test } from "bun:test";
import { ignoreWindowsUntilAnnotation } from "@pko/api";
import { builtin, timestamp } from "@pko/kube";

import { reasonOf, Stage, testTimeoutMs } from "./harness.ts";

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
    await using stage = await Stage.set();
    await stage.program("program");
    const { updateWindows, opening } = laterWindow(stage.clock.now());
    await stage.stack("web", { updateWindows });
    const waits = async (what: string, at: number) =>
      await stage.becomes(
        "web",
        `waiting with ${what}`,
        (stack) => reasonOf(stack) === "OutsideUpdateWindow" && stack.status?.next?.time === timestamp(at),
      );
    expect((await waits("its first update", opening)).status?.next?.what).toBe("the up for the first update");
    expect(stage.runs).toEqual([]);
    stage.jump(opening - stage.clock.now());
    await stage.isReady("web");
    expect(stage.runs).toHaveLength(1);

    stage.jump(2 * hour);
    await stage.program("program", "two");
    await waits("a new program", opening + 24 * hour);
    expect(stage.runs).toHaveLength(1);

    await stage.annotate("web", { [ignoreWindowsUntilAnnotation]: timestamp(stage.clock.now() + hour) });
    await stage.isReady("web", "2");
    expect(stage.runs).toHaveLength(2);
  },
  testTimeoutMs,
);

test(
  "the destroy of a deleted Stack waits for its window",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    const spec = { destroyOnFinalize: true };
    await stage.stack("web", spec);
    await stage.isReady("web");
    const { updateWindows, opening } = laterWindow(stage.clock.now());
    await stage.stack("web", { ...spec, updateWindows });
    await stage.delete("web");
    await stage.becomes(
      "web",
      "waiting with its destroy",
      (stack) => stack.status?.next?.what === "the destroy for the deletion of the Stack",
    );
    expect(stage.runs).toHaveLength(1);
    stage.jump(opening - stage.clock.now());
    await stage.isDeleted("web");
    expect(stage.runs.map((run) => run.split("@")[0])).toEqual(["up", "destroy"]);
  },
  testTimeoutMs,
);

test(
  "after maxFailures failures nothing is retried until a request, and one event reports it",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    stage.simulator.script.update = () => ({ end: "failed", message: "no such bucket" });
    await stage.stack("web", { maxFailures: 2 });
    await stage.becomes("web", "failed once", ({ status }) =>
      Boolean(status?.conditions?.[0]?.message.includes("failed (attempt 1 of 2): no such bucket")),
    );
    stage.jump(24 * hour);
    const exhausted = await stage.becomes("web", "exhausted", (stack) => reasonOf(stack) === "RetriesExhausted");
    expect(exhausted.status?.conditions?.[0]?.message).toContain("failed 2 of 2 times, so it is not retried");
    expect(exhausted.status?.next).toBeUndefined();
    stage.jump(24 * hour);
    await stage.fence();
    expect(stage.runs.filter((run) => run.startsWith("up"))).toHaveLength(2);

    stage.simulator.script.update = () => ({ end: "succeeded" });
    await stage.annotate("web", { "pulumi.com/reconciliation-request": "again" });
    await stage.isReady("web");
    const { items } = await stage.client.list(builtin.events, { namespace: stage.namespace });
    expect(items.filter(({ reason }) => reason === "StackRetriesExhausted")).toHaveLength(1);
  },
  testTimeoutMs,
);

test(
  "after maxFailures failures a destroy is not retried until a request",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    const spec = { destroyOnFinalize: true, maxFailures: 1 };
    await stage.stack("web", spec);
    await stage.isReady("web");
    stage.simulator.script.update = () => ({ end: "failed", message: "bucket not empty" });
    await stage.delete("web");
    await stage.becomes("web", "exhausted", (stack) => reasonOf(stack) === "RetriesExhausted");
    stage.jump(24 * hour);
    await stage.fence();
    expect(stage.runs.filter((run) => run.startsWith("destroy"))).toHaveLength(1);
    stage.simulator.script.update = () => ({ end: "succeeded" });
    await stage.annotate("web", { "pulumi.com/reconciliation-request": "again" });
    await stage.isDeleted("web");
  },
  testTimeoutMs,
);
