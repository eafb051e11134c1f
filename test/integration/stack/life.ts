/** Two Stacks from their creation to their deletion, with every step at which a fault may occur. */
import { reconcileRequestAnnotation } from "@pko/api";
import { updates, workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import type { StackScene } from "./scene.ts";

export interface Life {
  /** `type@revision` of each run, sorted. */
  readonly runs: readonly string[];
  /** The statuses at each stage. */
  readonly seen: readonly string[];
}

/** The runs without faults. */
export const undisturbedRuns = ["destroy@2", "up@1", "up@1", "up@2", "up@2", "up@2", "up@2"];

/** Deployed, a new revision, a request that fails and its retry, destroyed. */
export async function live(scene: StackScene): Promise<Life> {
  const seen: string[] = [];
  const settle = async (name: string, what: string): Promise<void> => {
    const { status } = await scene.isReady(name);
    const { state, lastSuccessfulCommit, failures, type } = status?.lastUpdate ?? {};
    seen.push(`${what}: ${name} ${type} ${state} ${lastSuccessfulCommit} ${failures}`);
  };
  await scene.program("program");
  await scene.stack("base");
  await settle("base", "created");
  await scene.stack("web", {
    destroyOnFinalize: true,
    prerequisites: [{ name: "base" }],
    workspaceReclaimPolicy: "Delete",
  });
  await settle("web", "created");
  await scene.program("program", "two");
  await scene.isReady("base", "2");
  await scene.isReady("web", "2");
  await settle("web", "changed");
  // Only one: on a busy machine, it may be retried before the test continues.
  let failing: string | undefined;
  scene.simulator.script.update = ({ spec, metadata }) =>
    spec?.type === "up" && (failing ??= metadata.uid) === metadata.uid
      ? { end: "failed", message: "no" }
      : { end: "succeeded" };
  await scene.annotate("web", { [reconcileRequestAnnotation]: "retry" });
  await scene.becomes("web", "failed", ({ status }) => status?.lastUpdate?.state === "failed");
  scene.jump(11_000);
  await settle("web", "recovered");
  await scene.delete("web");
  await scene.isDeleted("web");
  const left = async (): Promise<boolean> => {
    const [ups, spaces] = await Promise.all([
      scene.client.list(updates, { namespace: scene.namespace }),
      scene.client.list(workspaces, { namespace: scene.namespace }),
    ]);
    return ups.items.every(({ metadata }) => metadata.name?.startsWith("base")) && spaces.items.length === 1;
  };
  await waitFor(left, { timeoutMs: 45_000, what: "all objects of web to be deleted" });
  return { runs: scene.runs.toSorted(), seen };
}
