/** Describes a plan: one line for each resource that changes, what destroys data first. Names only, no values. */
import { urnName, urnType } from "@pko/records";
import type { PlanSummary } from "@pko/rpc";
import { bounded, joinClean, truncate, type Clean } from "../system/clean-text.ts";
import type { Cleaner } from "../pulumi/engine-events.ts";
import type { PlannedChange } from "./plan-file.ts";

/** The status of an object shows the summary, so it is short. */
const maxLines = 50;
const maxLineChars = 240;

const order = ["replace", "delete", "create", "update", "other"] as const satisfies readonly PlannedChange["op"][];

interface Summarized {
  readonly digest: string;
  readonly changes: readonly PlannedChange[];
  readonly unknownInputs: number;
}

export function summarize({ digest, changes, unknownInputs }: Summarized, clean: Cleaner): PlanSummary {
  return {
    digest,
    changes: changes.length > 0,
    destructive: changes.some(({ op }) => op === "replace" || op === "delete"),
    unknownInputs,
    summary: bounded(joinClean(summaryLines(changes, clean), "\n")),
  };
}

function summaryLines(changes: readonly PlannedChange[], clean: Cleaner): Clean[] {
  const lines = changes
    .toSorted((a, b) => order.indexOf(a.op) - order.indexOf(b.op) || (a.urn < b.urn ? -1 : 1))
    .map(({ op, urn }) => truncate(clean(`${op.padEnd(7)}  ${urnType(urn)} ${urnName(urn)}`), maxLineChars));
  const omitted = lines.length - maxLines;
  return omitted > 0 ? [...lines.slice(0, maxLines), clean(`… and ${omitted} more`)] : lines;
}
