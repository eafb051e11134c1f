/** Rules about commits that change nothing that the Stack's path filters select. */
import { skippedCommit } from "../history/skipped-commit.ts";
import type { StackPlan } from "../steps.ts";
import { presentStatus, type StackView } from "../view.ts";
import { noUpdateDue } from "./no-update-due.ts";

export function commitSkipped(view: StackView): StackPlan | undefined {
  const skipped = skippedCommit(view);
  const plan = noUpdateDue(view);
  if (!skipped || !plan || presentStatus(view).skippedCommit?.commit === skipped.commit) return undefined;
  return { ...plan, steps: [{ kind: "recordSkippedCommit", skipped }] };
}
