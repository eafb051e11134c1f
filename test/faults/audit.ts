/** Whether every run that changed resources was approved. Pure. */
import type { ApprovalSpec, UpdatePlan } from "@pko/api";

/** A run in the records of an agent that may have changed resources. */
export interface ChangingRun {
  /** The UID of its Update. */
  readonly runId: string;
  readonly stack: string;
  readonly kind: "up" | "destroy";
}

export interface SeenApproval {
  readonly name: string;
  readonly spec: ApprovalSpec;
  /** The UIDs of all Updates that its status has ever named. One that is withdrawn before it starts does not use it. */
  readonly usedBy: ReadonlySet<string>;
  /** Whether an Update took it from another one. */
  readonly isTaken: boolean;
}

/** The Pulumi stacks that need approvals, and for what. */
export type Guarded = Readonly<Record<string, "Always" | "OnDestructiveChanges">>;

/** A plan that an Update made. */
export type SeenPlan = Pick<UpdatePlan, "digest" | "destructive">;

export interface Audited {
  readonly guarded: Guarded;
  readonly runs: readonly ChangingRun[];
  /** The digest of the plan that each run applied. */
  readonly applied: ReadonlyMap<string, string>;
  readonly approvals: readonly SeenApproval[];
  /** The plan that each Update made, by UID. */
  readonly plans: ReadonlyMap<string, SeenPlan>;
}

/** One line for each run without an approval, and for each Approval that was used more than once, or taken from an Update. */
export function violations(audited: Audited): string[] {
  const { guarded, runs, approvals } = audited;
  return [
    ...approvals.flatMap(({ name, usedBy, isTaken }) => {
      const { length } = runs.filter(({ runId }) => usedBy.has(runId));
      if (length > 1) return [`the Approval ${name} was used by ${length} runs`];
      return isTaken ? [`the Approval ${name} was taken from the Update that used it`] : [];
    }),
    ...runs
      .filter((run) => run.stack in guarded && !isHarmless(run, audited) && !isApproved(run, audited))
      .map(({ kind, stack }) => `${kind} ${stack} ran without an Approval of its plan`),
  ];
}

/** The run applied a plan that needed no approval. */
function isHarmless({ runId, stack, kind }: ChangingRun, { guarded, applied, plans }: Audited): boolean {
  const isApplied = ({ digest }: SeenPlan): boolean => digest === applied.get(runId);
  const made = [...plans.values()].filter(isApplied);
  const isPlanned = made.length > 0 && made.every(({ destructive }) => !destructive);
  return kind === "up" && guarded[stack] === "OnDestructiveChanges" && isPlanned;
}

/** An Approval names exactly the plan that the run applied, and is used by the Update of the run. */
function isApproved({ runId }: ChangingRun, { approvals, applied, plans }: Audited): boolean {
  const digest = applied.get(runId);
  return approvals.some(
    ({ spec, usedBy }) =>
      digest !== undefined &&
      spec.decision === "Approve" &&
      spec.digest === digest &&
      plans.get(spec.updateUid)?.digest === digest &&
      usedBy.has(runId),
  );
}
