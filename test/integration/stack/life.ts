/** Two Stacks from their creation to their deletion, with every step at which a fault may occur. */
import { reconcileRequestAnnotation } from "@pko/api";
import { updates, workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import type { Stage } from "./harness.ts";

export interface Life {
  /** `type@revision` of each run, sorted. */
  readonly runs: readonly string[];
  /** The statuses at each stage. */
  readonly seen: readonly string[];
}

/** The runs without faults. */
export const undisturbedRuns = ["destroy@2", "up@1", "up@1", "up@2", "up@2", "up@2", "up@2"];

/** Deployed, a new revision, a request that fails and its retry, destroyed. */
export async function live(stage: Stage): Promise<Life> {
  const seen: string[] = [];
  const settle = async (name: string, what: string): Promise<void> => {
    const { status } = await stage.isReady(name);
    const { state, lastSuccessfulCommit, failures, type } = status?.lastUpdate ?? {};
    seen.push(`${what}: ${name} ${type} ${state} ${lastSuccessfulCommit} ${failures}`);
  };
  await stage.program("program");
  await stage.stack("base");
  await settle("base", "created");
  await stage.stack("web", {
    destroyOnFinalize: true,
    prerequisites: [{ name: "base" }],
    workspaceReclaimPolicy: "Delete",
  });
  await settle("web", "created");
  await stage.program("program", "two");
  await stage.isReady("base", "2");
  await stage.isReady("web", "2");
  await settle("web", "changed");
  stage.simulator.script.update = ({ spec }) =>
    spec?.type === "up" ? { end: "failed", message: "no" } : { end: "succeeded" };
  await stage.annotate("web", { [reconcileRequestAnnotation]: "retry" });
  await stage.becomes("web", "failed", ({ status }) => status?.lastUpdate?.state === "failed");
  stage.simulator.script.update = () => ({ end: "succeeded" });
  stage.jump(11_000);
  await settle("web", "recovered");
  await stage.delete("web");
  await stage.isDeleted("web");
  const left = async (): Promise<boolean> => {
    const [ups, spaces] = await Promise.all([
      stage.client.list(updates, { namespace: stage.namespace }),
      stage.client.list(workspaces, { namespace: stage.namespace }),
    ]);
    return ups.items.every(({ metadata }) => metadata.name?.startsWith("base")) && spaces.items.length === 1;
  };
  await waitFor(left, { timeoutMs: 20_000, what: "all objects of web to be deleted" });
  return { runs: stage.runs.toSorted(), seen };
}
