/**
 * Prints, as JSON, a Stack that the Stack controller itself has brought to rest, and its Update: the benchmark of scale makes
 * copies of them. The simulator of the integration tests replaces the other controllers.
 */
import type { Stack, Update } from "@pko/api";
import { updates } from "@pko/operator";
import { stopShared } from "@pko/testkit";

import { StackScene } from "../integration/stack/scene.ts";

export interface IdleStack {
  readonly stack: Stack;
  readonly update: Update;
}

async function idleStack(): Promise<IdleStack> {
  await using scene = await StackScene.open();
  scene.simulator.script.update = () => ({ end: "succeeded", outputs: { url: "https://example.com" } });
  await scene.program("program");
  await scene.stack("stack-00000", { workspaceReclaimPolicy: "Delete", successfulUpdatesHistoryLimit: 1000 });
  const stack = await scene.becomes("stack-00000", "at rest", (each) => isAtRest(each));
  const name = stack.status?.lastUpdate?.name ?? "";
  // Its finalizer is removed after the result is recorded.
  for (;;) {
    const update = await scene.client.get(updates, scene.ref(name));
    if (update.metadata.finalizers === undefined) return { stack, update };
    await Bun.sleep(50);
  }
}

function isAtRest({ metadata, status }: Stack): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "True" && status?.observedGeneration === metadata.generation && !status?.currentUpdate;
}

if (import.meta.main) {
  console.log(JSON.stringify(await idleStack()));
  await stopShared();
  process.exit(0);
}
