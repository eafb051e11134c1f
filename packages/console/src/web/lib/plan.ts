/** The lines of a plan's summary: what happens to which resource. Pure. */
import { opClass, type OpClass } from "./run.ts";

export interface PlannedChange {
  readonly op: string;
  readonly text: string;
  readonly tone: OpClass;
}

export interface Plan {
  /** Such as `1 to replace, 1 to create`. */
  readonly headline: string;
  /** Replacements and deletions first. */
  readonly changes: readonly PlannedChange[];
}

const rank: Readonly<Record<OpClass, number>> = { danger: 0, update: 1, create: 2, plain: 3 };

/** The operator writes a headline, then a line for each resource that starts with the operation. */
export function parsePlan(summary: string): Plan {
  const [headline = "", ...lines] = summary.split("\n").map((line) => line.trim());
  const changes = lines.filter(Boolean).map((line): PlannedChange => {
    const [op = "", ...rest] = line.split(" ");
    return { op, text: rest.join(" "), tone: opClass(op) };
  });
  return { headline, changes: changes.toSorted((a, b) => rank[a.tone] - rank[b.tone]) };
}
