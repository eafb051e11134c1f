/** The texts of messages, which every format shares: what happened, why, and what to do. Pure. */
import type { OccurrenceKind, Severity } from "@pko/api";

import { severityOf, type Occurrence } from "../occurrences/occurrence.ts";

/** Where a message comes from. */
export interface Origin {
  readonly namespace: string;
  readonly clusterName?: string;
}

export interface Line {
  readonly severity: Severity;
  readonly title: string;
  /** Written by programs and providers: formats must not interpret it. */
  readonly why: string;
  /** A command. */
  readonly action?: string;
  readonly permalink?: string;
}

export interface Digest {
  readonly title: string;
  readonly lines: readonly Line[];
  /** About the occurrences without a line. */
  readonly omitted?: string;
  readonly severity: Severity;
}

const maxLines = 10;

const ranks: Readonly<Record<Severity, number>> = { Error: 0, Warning: 1, Info: 2 };

/** One message about all occurrences: the most severe come first, then the oldest. */
export function digest(occurrences: readonly Occurrence[], origin: Origin): Digest {
  const ranked = occurrences.toSorted((a, b) => ranks[severityOf(a)] - ranks[severityOf(b)] || a.time - b.time);
  const lines = ranked.slice(0, maxLines).map((each) => lineFor(each, origin));
  const [first] = lines;
  const place = placeOf(origin);
  const title = lines.length === 1 && first ? `${first.title} in ${place}` : `${countsOf(ranked)} in ${place}`;
  const rest = ranked.length - lines.length;
  const omitted = rest > 0 ? `… and ${rest} more: kubectl get stacks -n ${origin.namespace}` : undefined;
  return { title, lines, severity: first?.severity ?? "Info", ...(omitted !== undefined && { omitted }) };
}

const placeOf = ({ namespace, clusterName }: Origin): string =>
  `namespace ${namespace}${clusterName === undefined ? "" : ` of cluster ${clusterName}`}`;

function lineFor(occurrence: Occurrence, origin: Origin): Line {
  const { message: why, permalink } = occurrence;
  const action = actionFor(occurrence, origin);
  return {
    severity: severityOf(occurrence),
    title: `Stack ${occurrence.stack}: ${titleFor(occurrence)}`,
    why,
    ...(action !== undefined && { action }),
    ...(permalink !== undefined && { permalink }),
  };
}

function titleFor({ kind, operation = "update", update = "" }: Occurrence): string {
  switch (kind) {
    case "UpdateSucceeded":
    case "PreviewSucceeded":
      return `${operation} succeeded (${update})`;
    case "UpdateFailed":
      return `${operation} failed (${update})`;
    case "PreviewFailed":
      return `the preview of ${operation === "destroy" ? "a destroy" : "an update"} failed (${update})`;
    case "AwaitingApproval":
      return `changes await approval (${update})`;
    case "Drifted":
      return "resources have drifted";
    case "DriftCheckFailed":
      return "the drift check failed";
    case "Stalled":
      return "stalled";
    case "Destroyed":
      return `its resources were destroyed (${update})`;
  }
}

/** Undefined where nothing is to be done. */
export function actionFor({ kind, stack }: Occurrence, { namespace }: Origin): string | undefined {
  switch (kind) {
    case "UpdateFailed":
    case "PreviewFailed":
    case "Drifted":
    case "DriftCheckFailed":
    case "Stalled":
      return `kubectl pulumi why ${stack} -n ${namespace}`;
    case "AwaitingApproval":
      return `kubectl pulumi approve ${stack} -n ${namespace}`;
    case "UpdateSucceeded":
    case "PreviewSucceeded":
    case "Destroyed":
      return undefined;
  }
}

const counted: Readonly<Record<OccurrenceKind, (count: number) => string>> = {
  UpdateSucceeded: (count) => `${count} ${count === 1 ? "update" : "updates"} succeeded`,
  UpdateFailed: (count) => `${count} ${count === 1 ? "update" : "updates"} failed`,
  PreviewSucceeded: (count) => `${count} ${count === 1 ? "preview" : "previews"} succeeded`,
  PreviewFailed: (count) => `${count} ${count === 1 ? "preview" : "previews"} failed`,
  AwaitingApproval: (count) => `${count} ${count === 1 ? "Stack awaits" : "Stacks await"} approval`,
  Drifted: (count) => `${count} ${count === 1 ? "Stack has" : "Stacks have"} drifted`,
  DriftCheckFailed: (count) => `${count} drift ${count === 1 ? "check" : "checks"} failed`,
  Stalled: (count) => `${count} ${count === 1 ? "Stack is" : "Stacks are"} stalled`,
  Destroyed: (count) => `${count} ${count === 1 ? "Stack was" : "Stacks were"} destroyed`,
};

/** In the order of the occurrences. */
function countsOf(occurrences: readonly Occurrence[]): string {
  const counts = new Map<OccurrenceKind, number>();
  for (const { kind } of occurrences) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => counted[kind](count)).join(", ");
}
