/** The run to follow: the one that is running, or the next one. */
import { stackNameLabel, type Update } from "@pko/api";

import type { Context } from "../context.ts";
import { CliError } from "../errors.ts";
import { updates } from "../kinds.ts";
import { duration } from "../output/time.ts";
import { followObjects, type Change } from "../stacks/follow.ts";
import { byCreation, summarizeUpdate } from "../stacks/summary.ts";

interface Search {
  readonly stackName: string;
  readonly timeoutMs: number;
  /** Called once, if no update is running. */
  readonly onWait: () => void;
}

const isUnfinished = (update: Update): boolean => ["waiting", "running"].includes(summarizeUpdate(update).state);

export async function currentOrNextRun(context: Context, search: Search): Promise<Update> {
  const { client, namespace, io } = context;
  const { stackName, timeoutMs, onWait } = search;
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([io.signal, timeout]);
  const labelSelector = `${stackNameLabel}=${stackName}`;
  let hasWaited = false;
  try {
    for await (const change of followObjects(client, updates, { namespace, labelSelector, signal })) {
      const found = runIn(change);
      if (found) return found;
      if (!hasWaited) onWait();
      hasWaited = true;
    }
  } catch (error) {
    if (io.signal.aborted || !timeout.aborted) throw error;
  }
  throw new CliError(`No update of Stack ${stackName} started within ${duration(timeoutMs)}.`, {
    fix: `To request one: kubectl pulumi reconcile ${stackName} -n ${namespace}. To see why none starts: kubectl pulumi why ${stackName} -n ${namespace}`,
  });
}

/** One that runs rather than one that waits; the newest of several. */
function runIn(change: Change<Update>): Update | undefined {
  const candidates = change.kind === "list" ? change.items : change.kind === "changed" ? [change.object] : [];
  const unfinished = candidates.filter(isUnfinished).toSorted(byCreation);
  return unfinished.find(({ status }) => status?.startTime !== undefined) ?? unfinished[0];
}
