/** The runs in the records of a lifecycle's agents. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { ChangingRun } from "./audit.ts";

interface RunRecord {
  readonly runId: string;
  readonly operation: { readonly kind: string; readonly previewOnly?: boolean };
  readonly ready: { readonly stack: string };
}

/** The runs that may have changed resources. `folder` contains the folders of the pods. */
export function changingRuns(folder: string): ChangingRun[] {
  const pods = readdirSync(folder).filter((name) => name.startsWith("pod-"));
  return pods.flatMap((pod) => {
    const runs = join(folder, pod, "share/runs");
    return existsSync(runs) ? readdirSync(runs).flatMap((run) => changingRun(join(runs, run))) : [];
  });
}

function changingRun(folder: string): ChangingRun[] {
  const path = join(folder, "run.json");
  // The agent is about to write it, before it starts anything.
  if (!existsSync(path)) return [];
  const { runId, operation, ready } = JSON.parse(readFileSync(path, "utf8")) as RunRecord;
  const { kind, previewOnly = false } = operation;
  return previewOnly || (kind !== "up" && kind !== "destroy") ? [] : [{ runId, stack: ready.stack, kind }];
}
