/** Tables of plans: each case is a sentence, the view to which it applies, and the plan. */
import { expect, test } from "bun:test";

import { planWorkspace } from "../rules/index.ts";
import { workspaceStatus } from "../status.ts";
import type { Step } from "../steps.ts";
import { now, view, type Trait } from "./views.ts";

export interface Case {
  readonly when: readonly Trait[];
  readonly steps?: readonly Step["kind"][];
  readonly outcome: string;
  /** Part of the outcome as JSON. */
  readonly contains?: string;
  /** Of the Ready condition. */
  readonly reason?: string;
  readonly requeueAfterMs?: number;
}

export function checkPlans(cases: Readonly<Record<string, Case>>): void {
  for (const [name, { when, steps = [], outcome, contains = "", reason, requeueAfterMs }] of Object.entries(cases)) {
    test(name, () => {
      const observed = view(...when);
      const plan = planWorkspace(observed);
      expect(plan.steps.map(({ kind }) => kind)).toEqual([...steps]);
      expect(plan.outcome.kind).toBe(outcome as never);
      expect(JSON.stringify(plan.outcome)).toContain(contains);
      if (reason !== undefined) expect(workspaceStatus(observed, plan.outcome).conditions?.[0]?.reason).toBe(reason);
      if (requeueAfterMs !== undefined) expect(plan.requeueAt).toBe(now + requeueAfterMs);
    });
  }
}
