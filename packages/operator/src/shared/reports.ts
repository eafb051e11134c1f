/** What is reported to a forge, as controllers other than that of reports need to know it. Pure. */
import type { ReportProblem, ReportSettings, Stack, StackSpec, Update } from "@pko/api";

import { commitOf, isLater, isReportDue, isUpdateOf } from "./updates.ts";
import type { ClassReader } from "./workspace-classes.ts";

export function reportSettings(stack: Stack, classes: ClassReader): ReportSettings | undefined {
  // The schema requires a spec, but an object from before may have none.
  const spec: Partial<StackSpec> | undefined = stack.spec;
  if (spec?.report) return spec.report;
  const found = classes(stack.metadata.namespace ?? "");
  return found.kind === "one" ? found.spec.report : undefined;
}

/** Problems that end by themselves. Somebody has to solve the others. */
export const temporaryProblems: ReadonlySet<ReportProblem> = new Set(["RateLimited", "Unavailable"]);

interface AbandonedPreview {
  readonly stack: Stack;
  /** In its Workspace. */
  readonly updates: readonly Update[];
  /** The Stack or the whole operator. */
  readonly isSuspended: boolean;
}

/** The names of the Updates of a preview whose end the forge does not show, although it may soon. */
export function unreportedUpdates({ stack, updates, isSuspended }: AbandonedPreview): string[] {
  const own = updates.filter((update) => isUpdateOf(update, stack) && commitOf(update) !== undefined);
  const last = own.find((update) => !own.some((other) => isLater(other, update)));
  const isUnreported = (update: Update): boolean => {
    const { report, startTime } = update.status ?? {};
    // The first report may be on its way. An earlier Update has none if a later one is about the same commit.
    if (!report) return update === last && !(isSuspended && startTime === undefined);
    return isReportDue(update) && (report.problem === undefined || temporaryProblems.has(report.problem));
  };
  return own.filter(isUnreported).map(({ metadata }) => metadata.name ?? "");
}
