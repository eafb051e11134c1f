/** When is a drift check due? Pure. */
import { parsePastTimestamp } from "../../../shared/parse-timestamp.ts";
import { jittered } from "../../../shared/pauses.ts";
import { driftRequestOf, nextCheckTime } from "../../history/drift.ts";
import { lastTypeOf } from "../../history/trigger.ts";
import { isDeleting, lastUpdateIn, presentStatus, validSpec, type StackView } from "../../view.ts";
import { currentTrigger, nextDue, type Due } from "../due.ts";

export type DriftDue =
  Extract<Due, { kind: "now" }> | { readonly kind: "checkAt"; readonly at: number } | { readonly kind: "never" };

const never: DriftDue = { kind: "never" };

/** Only while nothing else is to be done: an update changes what is compared. */
export function driftDue(view: StackView): DriftDue {
  const spec = validSpec(view);
  const { source, stack, now } = view;
  if (!spec || source.kind !== "ready" || !isSettled(view)) return never;
  const request = driftRequestOf(stack);
  const { drift } = presentStatus(view);
  const isRequested = request !== "" && request !== drift?.request;
  const at = drift ? nextCheckTime(view, drift) : firstCheckTime(view);
  if (!isRequested && (at === undefined || now < at)) return at === undefined ? never : { kind: "checkAt", at };
  const { revision, digest } = source;
  const trigger = currentTrigger(view, { spec, revision, digest });
  const check = { ...trigger, type: "refresh", ...(request && { driftRequest: request }) } as const;
  return { kind: "now", reason: "drift", trigger: check };
}

/** The last update succeeded, it or an earlier one has deployed something, and no update is due. */
function isSettled(view: StackView): boolean {
  const last = lastUpdateIn(view);
  const due = nextDue(view);
  if (isDeleting(view) || !due || due.kind === "now" || last?.state !== "succeeded" || last.outputsPending)
    return false;
  // The Go operator does not record whether it has deployed anything.
  return presentStatus(view).deployed ?? lastTypeOf(last) === "up";
}

/** An interval after the last update. */
function firstCheckTime(view: StackView): number | undefined {
  const everyMs = validSpec(view)?.driftDetection?.everyMs;
  if (everyMs === undefined) return undefined;
  const updatedAt = parsePastTimestamp(lastUpdateIn(view)?.lastResyncTime, view.now) ?? 0;
  return updatedAt + jittered(everyMs, view.stack.metadata.uid ?? "");
}
