/** `kubectl get stacks` shows why a Stack fails, from the first failure on. */
import type { Stack } from "@pko/api";
import { expect, setDefaultTimeout, test } from "bun:test";

import { printedRow } from "../harness/printed.ts";
import { condition, reasonOf, StackScene, testTimeoutMs } from "./scene.ts";

setDefaultTimeout(testTimeoutMs);

const printed = (scene: StackScene, ...options: readonly string[]): Promise<Record<string, string>> =>
  printedRow({ kinds: "stacks", ...scene.ref("web") }, ...options);

/** So often in a row, and waits for the next attempt. */
const hasFailed =
  (failures: number) =>
  ({ status }: Stack): boolean =>
    status?.lastUpdate?.failures === failures && status.currentUpdate === undefined;

test("the class and the message of the first failed update are shown, also while it is retried", async () => {
  await using scene = await StackScene.open();
  await scene.program("program");
  const errorClass = "programError";
  scene.simulator.script.update = () => ({ end: "failed", message: "no such bucket", errorClass });
  await scene.stack("web");
  const { status } = await scene.becomes("web", "failed", hasFailed(1));
  // On a busy machine, the retry could start before kubectl has ended.
  await scene.stop();

  const AGE = expect.stringMatching(/^\d+[ms]/) as string;
  const failed = { NAME: "web", "LAST UPDATE": "failed", AGE, READY: "False", FAILURE: errorClass };
  const waiting = { ...failed, RECONCILING: "RetryingAfterFailure" };
  expect(await printed(scene)).toEqual(waiting);
  const wide = { STACK: "dev", "LAST COMMIT": "1", TYPE: "up" };
  // kubectl shows the first line of it.
  const MESSAGE = `The up ${status?.lastUpdate?.name} failed: no such bucket...`;
  expect(await printed(scene, "-o", "wide")).toEqual({ ...waiting, ...wide, MESSAGE });
  const update = { kinds: "updates", ...scene.ref(status?.lastUpdate?.name ?? "") };
  expect(await printedRow(update)).toMatchObject({ WORKSPACE: "web", FAILED: "True", COMPLETE: "True" });

  scene.simulator.script.update = () => ({ end: "never" });
  scene.start();
  scene.jump(3_600_000);
  await scene.becomes("web", "retried", ({ status }) => status?.currentUpdate !== undefined);
  expect(await printed(scene)).toMatchObject({ READY: "False", RECONCILING: "StackProcessing", FAILURE: errorClass });
});

test("the failure is no longer shown after a success", async () => {
  await using scene = await StackScene.open();
  await scene.program("program");
  scene.simulator.script.update = () => ({ end: "failed", message: "no such bucket", errorClass: "programError" });
  await scene.stack("web");
  await scene.becomes("web", "failed", hasFailed(1));
  scene.simulator.script.update = () => ({ end: "succeeded" });
  await scene.program("program", "two");
  await scene.isReady("web", "2");
  expect(Object.keys(await printed(scene))).toEqual(["NAME", "LAST UPDATE", "AGE", "READY"]);
});

test("why a workspace cannot be prepared is shown, although no update has run", async () => {
  await using scene = await StackScene.open();
  await scene.program("program");
  const reason = "InstallationFailed";
  const message = "npm ci failed: no such package";
  scene.simulator.script.workspace = () => ({ stalled: reason, message });
  await scene.stack("web");
  const stack = await scene.becomes("web", "stalled", (stack) => condition(stack, "Stalled") !== undefined);

  const row = await printed(scene, "-o", "wide");
  expect(row).toMatchObject({ READY: "False", STALLED: reasonOf(stack) });
  expect(row["MESSAGE"]).toContain(message);
  expect(await printedRow({ kinds: "workspaces", ...scene.ref("web") })).toMatchObject({
    READY: "False",
    REASON: reason,
  });
});
