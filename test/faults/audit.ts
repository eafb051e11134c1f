/** Whether every run that changed resources was approved. Pure. */
import type { ApprovalSpec } from "@pko/api";

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
  /** The UIDs of all Updates that its status has ever named. */
  readonly usedBy: ReadonlySet<string>;
}

export interface Audited {
  /** The Pulumi stacks that need an approval for every change. */
  readonly guarded: readonly string[];
  readonly runs: readonly ChangingRun[];
  /** The digest of the plan that each run applied. */
  readonly applied: ReadonlyMap<string, string>;
  readonly approvals: readonly SeenApproval[];
  /** The digest of the plan that each Update made, by UID. */
  readonly plans: ReadonlyMap<string, string>;
}

/** One line for each run without an approval, and for each Approval that was used more than once. */
export function violations(audited: Audited): string[] {
  const { guarded, runs, approvals } = audited;
  return [
    ...approvals.flatMap(({ name, usedBy }) =>
      usedBy.size > 1 ? [`the Approval ${name} was used by ${usedBy.size} Updates`] : [],
    ),
    ...runs
      .filter((run) => guarded.includes(run.stack) && !isApproved(run, audited))
      .map(({ kind, stack }) => `${kind} ${stack} ran without an Approval of its plan`),
  ];
}

/** An Approval names exactly the plan that the run applied, and is used by the Update of the run. */
function isApproved({ runId }: ChangingRun, { approvals, applied, plans }: Audited): boolean {
  const digest = applied.get(runId);
  return approvals.some(
    ({ spec, usedBy }) =>
      digest !== undefined &&
      spec.decision === "Approve" &&
      spec.digest === digest &&
      plans.get(spec.updateUid) === digest &&
      usedBy.has(runId),
  );
}
