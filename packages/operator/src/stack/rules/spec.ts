/** Rules about a spec that cannot be carried out. */
import { describeProblems } from "@pko/api";

import * as messages from "../messages.ts";
import { stalled } from "../outcome.ts";
import { wait, type StackPlan } from "../steps.ts";
import { isDeleting, type StackView } from "../view.ts";
import { recheckAt } from "./recheck.ts";

export function specInvalid({ spec }: StackView): StackPlan | undefined {
  return spec.ok ? undefined : wait(stalled("SpecInvalid", describeProblems(spec.problems)));
}

/** A destroy does not wait for prerequisites. */
export function dependencyCycle(view: StackView): StackPlan | undefined {
  if (view.cycle.length === 0 || isDeleting(view)) return undefined;
  return wait(stalled("SpecInvalid", messages.dependencyCycle(view.cycle)));
}

/** Known once `checkInputs` has been performed. */
export function inputsMissing(view: StackView): StackPlan | undefined {
  const { missingInputs = [] } = view;
  if (missingInputs.length === 0) return undefined;
  return wait(stalled("SpecInvalid", messages.missingInputs(missingInputs)), recheckAt(view, "SpecInvalid"));
}
