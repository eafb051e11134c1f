/** The end of a preview of a pull request is reported before its Updates are deleted. Pure. */
import { parseTimestamp } from "../../../shared/parse-timestamp.ts";
import { unrecordedUpdate } from "../../history/result.ts";
import * as messages from "../../messages.ts";
import { processing } from "../../outcome.ts";
import { wait, type StackPlan } from "../../steps.ts";
import { hasFinalizer, unfinishedUpdate, type StackView } from "../../view.ts";

/** A forge that does not respond must not delay the deletion for longer. */
export const reportsMs = 2 * 60_000;

/**
 * Reports about many previews that end together take turns. Without its Update, a commit would stay pending at the forge forever. The
 * run itself is cancelled without delay, and its result recorded: only what has ended is kept.
 */
export function resultUnreported(view: StackView): StackPlan | undefined {
  const [update] = view.unreported;
  if (update === undefined || !hasFinalizer(view) || unfinishedUpdate(view) || unrecordedUpdate(view)) return undefined;
  const deletedAt = parseTimestamp(view.stack.metadata.deletionTimestamp) ?? 0;
  // If the clock is wrong, the time may be far in the future.
  if (Math.abs(view.now - deletedAt) >= reportsMs) return undefined;
  const until = deletedAt + reportsMs;
  return wait(processing(messages.endUnreported(update, until), messages.reportOf(update)), until);
}
