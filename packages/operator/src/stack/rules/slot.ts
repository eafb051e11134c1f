/** Whether a Stack needs the slot of its Workspace. */
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import type { Turn } from "../../shared/channels/slot-line.ts";
import { isPlaceText } from "../../shared/slot-text.ts";
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import type { StackPlan } from "../steps.ts";
import { presentStatus, unfinishedUpdate, type StackView } from "../view.ts";
import { driftDue } from "./drift/due.ts";
import { nextDue } from "./due.ts";

/** Those of a Stack for which something runs, is prepared, or waits for a slot. */
const busy: ReadonlySet<Outcome["kind"]> = new Set<Outcome["kind"]>([
  "processing",
  "waitingForSlot",
  "upToDate",
  "unchanged",
]);

/** Someone else gets the slot as soon as the Stack waits for an approval, a window, another Stack, or a change. */
export function needsSlot(view: StackView, { outcome }: Pick<StackPlan, "outcome">): boolean {
  if (unfinishedUpdate(view)) return true;
  const isDue = nextDue(view)?.kind === "now" || driftDue(view).kind === "now";
  return isDue && busy.has(outcome.kind);
}

/** After a restart, the Stack keeps its place. One whose Workspace was being prepared had a slot, so it is first. */
export function turnOf(view: StackView): Partial<Turn> {
  const { for: what = "", since: recorded } = presentStatus(view).waiting ?? {};
  if (what === messages.workspaceName(view.stack.metadata.name ?? "")) return { rank: 0 };
  const since = isPlaceText(what) ? parseTimestamp(recorded) : undefined;
  return since === undefined ? {} : { rank: since, since };
}
