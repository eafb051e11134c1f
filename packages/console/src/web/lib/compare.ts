/** Two runs side by side: facts, changed inputs, and what each did to every resource. Pure. */
import type { UpdateRecordContent } from "@pko/api/browser";

import { opText, type RunResource } from "./run.ts";

export interface Difference {
  readonly label: string;
  readonly a: string;
  readonly b: string;
  readonly isEqual: boolean;
  /** A difference that says nothing: no two runs start at the same time. */
  readonly isExpected: boolean;
}

const alwaysDifferent: ReadonlySet<string> = new Set(["Started", "Duration"]);

type Facts = Readonly<Record<string, string | undefined>>;

export function compareFacts(a: Facts, b: Facts): Difference[] {
  const labels = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return labels.flatMap((label) => {
    const [left, right] = [a[label] ?? "", b[label] ?? ""];
    if (left === "" && right === "") return [];
    return [{ label, a: left, b: right, isEqual: left === right, isExpected: alwaysDifferent.has(label) }];
  });
}

export function factsOf(record: UpdateRecordContent): Facts {
  const duration = Date.parse(record.endTime) - Date.parse(record.startTime);
  return {
    Operation: record.type,
    Result: record.errorClass === undefined ? record.result : `${record.result} (${record.errorClass})`,
    Revision: record.revision,
    Trigger: record.trigger,
    "Approved by": record.approval?.decidedBy,
    Started: record.startTime,
    Duration: Number.isNaN(duration) ? undefined : `${Math.round(duration / 1000)} s`,
    ...Object.fromEntries(
      Object.entries(record.versions ?? {}).map(([name, version]) => [`Version of ${name}`, version]),
    ),
  };
}

/** Digests are long and mean nothing to a reader: only whether they are equal. */
export function compareInputs(a: Facts, b: Facts): { readonly name: string; readonly text: string }[] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].toSorted();
  return names.map((name) => ({ name, text: inputText(a[name], b[name]) }));
}

function inputText(a: string | undefined, b: string | undefined): string {
  if (a === undefined) return "only in the second run";
  if (b === undefined) return "only in the first run";
  return a === b ? "the same" : "changed";
}

export interface ResourceDifference {
  readonly urn: string;
  readonly name: string;
  readonly type: string;
  readonly a: string;
  readonly b: string;
}

/** Only resources to which the runs did different things. */
export function compareResources(a: readonly RunResource[], b: readonly RunResource[]): ResourceDifference[] {
  const [left, right] = [operations(a), operations(b)];
  const all = new Map([...a, ...b].map((resource) => [resource.urn, resource]));
  return [...all.values()]
    .map(({ urn, name, type }) => ({
      urn,
      name,
      type,
      a: left.get(urn) ?? "not part of it",
      b: right.get(urn) ?? "not part of it",
    }))
    .filter((each) => each.a !== each.b)
    .toSorted((x, y) => x.urn.localeCompare(y.urn));
}

function operations(resources: readonly RunResource[]): Map<string, string> {
  const byUrn = new Map<string, string[]>();
  for (const { urn, op, state } of resources) {
    const text = state === "failed" ? `${opText(op)} failed` : opText(op);
    byUrn.set(urn, [...(byUrn.get(urn) ?? []), text]);
  }
  return new Map([...byUrn].map(([urn, texts]) => [urn, texts.join(", ")]));
}
