/** The plans of Updates that end now. */
import type { RecordResult } from "@pko/rpc";

import { updateRecord } from "../desired/record.ts";
import { resultSecrets } from "../desired/result-secrets.ts";
import type { Run } from "../../agents/agents.ts";
import type { Ending } from "../outcome.ts";
import type { Step, UpdatePlan } from "../steps.ts";
import { hasStarted, isDeleting, type UpdateView } from "../view.ts";

/** Without a result from the agent. The run is forgotten first: no request may reach a pod that is not the recorded one. */
export function endedWithoutResult(
  view: UpdateView,
  ending: Omit<Ending, "result">,
  ...confirmations: readonly Step[]
): UpdatePlan {
  return {
    steps: [...confirmations, { kind: "forgetRun" }, ...recordSteps(view, ending)],
    outcome: { kind: "ended", ending },
  };
}

export function endedWithResult(
  view: UpdateView,
  ending: Ending,
  run: Extract<Run, { state: "finished" }>,
): UpdatePlan {
  const { plan, ...others } = resultSecrets(view, run);
  const secrets = { ...others, ...(plan && ending.reason === "UpdateSucceeded" && { plan }) };
  const steps: Step[] = [{ kind: "storeResult", secrets }, ...recordSteps(view, ending, run.record)];
  return { steps, outcome: { kind: "ended", ending } };
}

/** An Update that never started has nothing to record, and the record of a deleted Update would be deleted with it. */
function recordSteps(view: UpdateView, ending: Ending, read?: RecordResult): Step[] {
  if (!hasStarted(view) || isDeleting(view)) return [];
  return [{ kind: "storeRecord", record: updateRecord(view, ending, read) }];
}
