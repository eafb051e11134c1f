/** The plans of Updates that end now. */
import { resultSecrets } from "../desired/result-secrets.ts";
import type { Run } from "../../agents/agents.ts";
import type { Ending } from "../outcome.ts";
import type { Step, UpdatePlan } from "../steps.ts";
import type { UpdateView } from "../view.ts";

/** Without a result from the agent. The run is forgotten first: no request may reach a pod that is not the recorded one. */
export function endedWithoutResult(ending: Omit<Ending, "result">, ...confirmations: readonly Step[]): UpdatePlan {
  return { steps: [...confirmations, { kind: "forgetRun" }], outcome: { kind: "ended", ending } };
}

export function endedWithResult(
  { update }: UpdateView,
  ending: Ending,
  run: Extract<Run, { state: "finished" }>,
): UpdatePlan {
  const { plan, ...others } = resultSecrets(update, run);
  const secrets = { ...others, ...(plan && ending.reason === "UpdateSucceeded" && { plan }) };
  return { steps: [{ kind: "storeResult", secrets }], outcome: { kind: "ended", ending } };
}
