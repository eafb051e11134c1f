/**
 * Describes a plan: how many resources change, then a line for each, starting with those that destroy data. Names only, no values. The
 * status of an object shows it, so it is short, and counts what it omits.
 */
import { urnName, urnType } from "@pko/records";
import type { PlanSummary } from "@pko/rpc";
import { escapeControls, joinClean, truncate, type Clean } from "../system/clean-text.ts";
import type { Cleaner } from "../pulumi/engine-events.ts";
import type { PlannedChange } from "./plan-file.ts";

const maxLines = 50;
const maxLineChars = 240;
/** Of all lines together. The operator truncates a summary of more than 4,096 characters, and would hide what it omits. */
const maxChars = 3_800;

/** In the order of the summary. */
const operations: readonly { readonly op: PlannedChange["op"]; readonly planned: string }[] = [
  { op: "replace", planned: "to replace" },
  { op: "delete", planned: "to delete" },
  { op: "create", planned: "to create" },
  { op: "update", planned: "to update" },
  { op: "other", planned: "to change otherwise" },
];

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
    summary: joinClean(summaryLines(changes, clean), "\n"),
  };
}

interface Line {
  readonly op: PlannedChange["op"];
  readonly text: Clean;
}

function summaryLines(changes: readonly PlannedChange[], clean: Cleaner): Clean[] {
  if (changes.length === 0) return [];
  const lines = operations.map(({ op }) =>
    changes
      .filter((change) => change.op === op)
      .toSorted((a, b) => (a.urn < b.urn ? -1 : 1))
      .map((change): Line => ({ op, text: changeLine(change, clean) })),
  );
  const shown = fitting(byImportance(lines));
  const omitted = lines.flat().filter((line) => !shown.has(line));
  return [
    clean(countsOf(changes)),
    ...lines.flat().flatMap((line) => (shown.has(line) ? [line.text] : [])),
    ...(omitted.length > 0 ? [clean(`… and ${omitted.length} more: ${countsOf(omitted)}`)] : []),
  ];
}

/** Cleaned before its control characters are escaped, since a secret may contain some. */
function changeLine({ op, urn }: PlannedChange, clean: Cleaner): Clean {
  const text = clean(`${op.padEnd(7)}  ${urnType(urn)} ${urnName(urn)}`);
  return truncate(escapeControls(text), maxLineChars);
}

function countsOf(changes: readonly Pick<PlannedChange, "op">[]): string {
  const counts = operations.map(({ op, planned }) => ({
    count: changes.filter((each) => each.op === op).length,
    planned,
  }));
  return counts.flatMap(({ count, planned }) => (count > 0 ? [`${count} ${planned}`] : [])).join(", ");
}

/** Replacements and deletions in turn, so that many of one kind leave room for the other; then the rest in the same way. */
function byImportance([replacements = [], deletions = [], ...others]: readonly (readonly Line[])[]): Line[] {
  return [...inTurn([replacements, deletions]), ...inTurn(others)];
}

function inTurn(lists: readonly (readonly Line[])[]): Line[] {
  const longest = Math.max(...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, index) => lists.flatMap((list) => list[index] ?? [])).flat();
}

function fitting(lines: readonly Line[]): ReadonlySet<Line> {
  const shown = new Set<Line>();
  let chars = 0;
  for (const line of lines) {
    chars += line.text.length + 1;
    if (shown.size === maxLines || chars > maxChars) break;
    shown.add(line);
  }
  return shown;
}
