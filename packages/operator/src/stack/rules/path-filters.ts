/** Rules about commits that change nothing that the Stack's path filters select. */
import { skippedCommit } from "../history/skipped-commit.ts";
import { unchanged, type StackPlan } from "../steps.ts";
import { lastUpdateIn, presentStatus, type StackView } from "../view.ts";
import { noUpdateDue } from "./no-update-due.ts";

export function commitSkipped(view: StackView): StackPlan | undefined {
  const skipped = skippedCommit(view);
  if (!skipped || presentStatus(view).skippedCommit?.commit === skipped.commit) return undefined;
  const steps = [{ kind: "recordSkippedCommit", skipped }] as const;
  const plan = noUpdateDue(view);
  if (plan && !lastUpdateIn(view)?.outputsPending) return { ...plan, steps };
  return plan || isComparedByAgent(view) ? { steps, outcome: unchanged } : undefined;
}

/** Its result would be lost with the next change of the Workspace, even if that is for something else that is due. */
const isComparedByAgent = ({ source }: StackView): boolean =>
  source.kind === "ready" && source.uncompared !== undefined;
