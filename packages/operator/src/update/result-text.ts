/** A run's result and progress in the form of the status. Never the outputs, which may be secret. Pure. */
import { truncateStdout, type Stdout, type UpdateProgress } from "@pko/api";
import { timestamp } from "@pko/kube";
import type { Progress } from "@pko/records";
import type { PendingOperation, RunResult } from "@pko/rpc";

import { changeSummary } from "../shared/changes.ts";
import { pendingOperationsMessage } from "../shared/pending-operations.ts";
import { driftCount } from "../shared/drift.ts";
import { truncate } from "../shared/truncate.ts";

/** A condition's message may be longer, but every watcher receives it. */
const maxConditionMessage = 1024;
const maxStatusMessage = 8192;

export function conditionMessage(text: string): string {
  return truncate(text, maxConditionMessage);
}

/** For the status: the error, what it left behind, then the program's own messages. */
export function resultText(result: RunResult): string | undefined {
  const { error, pendingOperations: pending = [] } = result;
  const notes = pending.length > 0 ? [`Warning: ${pendingOperationsMessage(pending)}.`] : [];
  if (!error) return notes[0];
  const lines = error.lines.filter((line) => line.trim() !== "" && !error.message.includes(line.trim()));
  return truncate([error.message, ...notes, ...lines].join("\n"), maxStatusMessage);
}

const mostPendingOperations = 20;

/** As many as the status can hold. */
export function pendingOperations({ pendingOperations: pending = [] }: RunResult): PendingOperation[] {
  return pending
    .slice(0, mostPendingOperations)
    .map(({ urn, operation }) => ({ urn: truncate(urn, maxConditionMessage), operation }));
}

type ResultPart = Pick<RunResult, "operation" | "plan" | "drift">;

/** A plan for a destroy destroys nothing, and a drift check changes nothing. */
const isPreview = ({ operation, plan, drift }: ResultPart): boolean =>
  operation === "preview" || plan !== undefined || drift !== undefined;

export function summaryOf({ changes, ...result }: ResultPart & Pick<RunResult, "changes">): string {
  return changeSummary(changes, { isPreview: isPreview(result) });
}

/** The printed plan of a preview, the drift that was found, or the output of a failed run. The rest is in the agent's log. */
export function stdoutOf(result: RunResult): Stdout | undefined {
  const { outcome, output, drift } = result;
  const isClean = drift !== undefined && driftCount(drift) === 0;
  const isShown = outcome !== "succeeded" || (isPreview(result) && !isClean);
  if (!isShown || output.tail === "") return undefined;
  const bounded = truncateStdout(output.tail);
  return { ...bounded, truncated: bounded.truncated || output.truncated };
}

interface ProgressContext {
  readonly now: number;
  /** How many resources the stack had after its last operation. */
  readonly expectedResources?: number;
}

export function progressSummary({ now, expectedResources }: ProgressContext, progress: Progress): UpdateProgress {
  const { created, updated, deleted, replaced, unchanged, failed, other, current } = progress;
  const finished = created + updated + deleted + replaced + unchanged + failed + other;
  return {
    time: timestamp(now),
    created,
    updated,
    deleted,
    replaced,
    unchanged,
    failed,
    ...(current && { current: truncate(`${current.op} ${current.urn}`, maxConditionMessage) }),
    // Below 100 until the end: new resources were not expected.
    ...(expectedResources !== undefined && {
      percent: Math.min(99, Math.floor((finished * 100) / expectedResources)),
    }),
  };
}
