/** What a controller decides: a list of rules, of which the first that applies makes the plan. Pure. */

export interface Plan<Step, Outcome> {
  /** Performed in order. */
  readonly steps: readonly Step[];
  /** What the status reports once the steps are performed. */
  readonly outcome: Outcome;
  /** When to reconcile again even if nothing changes, in milliseconds since the epoch. */
  readonly requeueAt?: number;
}

/** Undefined where the rule does not apply. */
export type Rule<View, Decision> = (view: View) => Decision | undefined;

/** A list of rules is total: its last rule applies to every view. */
export function firstDecision<View, Decision>(rules: readonly Rule<View, Decision>[], view: View): Decision {
  for (const rule of rules) {
    const decision = rule(view);
    if (decision) return decision;
  }
  throw new Error("no rule applies: the last rule of a list must apply to every view");
}
