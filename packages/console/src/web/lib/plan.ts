/** The lines of a plan's summary: what happens to which resource. Pure. */
import { opClass, type OpClass } from "./run.ts";

export interface PlannedChange {
  readonly op: (typeof operations)[number];
  readonly text: string;
  readonly tone: OpClass;
}

export interface Plan {
  /** Such as `1 to replace, 1 to create`. */
  readonly headline: string;
  /** Replacements and deletions first. */
  readonly changes: readonly PlannedChange[];
  /** What the summary leaves out; empty if it is complete. */
  readonly rest: string;
}

/** As the agent writes them, in its order. */
const operations = ["replace", "delete", "create", "update", "other"] as const;

/** The counts, a line for each resource, which starts with the operation, and how many are left out. */
export function parsePlan(summary: string): Plan {
  const lines = summary
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const changes = lines.flatMap((line): PlannedChange[] => {
    const [first, ...rest] = line.split(/\s+/);
    const op = operations.find((each) => each === first);
    return op === undefined ? [] : [{ op, text: rest.join(" "), tone: opClass(op) }];
  });
  const sorted = changes.toSorted((a, b) => operations.indexOf(a.op) - operations.indexOf(b.op));
  const rest = lines.filter((line) => line.startsWith("…")).join(" ");
  const [first = ""] = lines;
  const hasHeadline = /^\d+ to /.test(first);
  return { headline: hasHeadline ? first : headlineOf(sorted), changes: sorted, rest };
}

/** Of a summary that an earlier agent wrote. */
function headlineOf(changes: readonly PlannedChange[]): string {
  const parts = operations.flatMap((op) => {
    const count = changes.filter((change) => change.op === op).length;
    return count === 0 ? [] : [`${count} to ${op === "other" ? "change otherwise" : op}`];
  });
  return parts.length === 0 ? "no changes" : parts.join(", ");
}
