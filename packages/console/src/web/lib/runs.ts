/** The runs of a Stack: Updates that exist, and records of those that no longer do. Pure. */
import { updateState, type Update, type UpdateRecord, type UpdateRecordContent } from "@pko/api/browser";

import { opText } from "./run.ts";

export interface RunRow {
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  readonly result: string;
  readonly startTime?: string;
  readonly endTime?: string;
  readonly summary: string;
  readonly reason: string;
  readonly revision: string;
  readonly hasRecord: boolean;
}

/** The newest first. */
export function runsOf(updates: readonly Update[], records: readonly UpdateRecord[]): RunRow[] {
  const rows = new Map<string, RunRow>();
  for (const record of records) rows.set(record.record.updateName, fromRecord(record));
  for (const update of updates) {
    const name = update.metadata.name ?? "";
    const known = rows.get(name);
    rows.set(name, { ...fromUpdate(update), ...(known && { hasRecord: true, revision: known.revision }) });
  }
  return [...rows.values()].toSorted((a, b) => startOf(b).localeCompare(startOf(a)) || a.name.localeCompare(b.name));
}

/** A run that has not started is the newest. */
const startOf = ({ startTime }: RunRow): string => startTime ?? "9999";

const done: Readonly<Record<string, string>> = {
  same: "unchanged",
  create: "created",
  update: "updated",
  delete: "deleted",
  replace: "replaced",
  refresh: "refreshed",
  import: "imported",
};

/** `2 created, 1 unchanged`; of a preview, `2 to create, 1 unchanged`. */
export function changeText({ type, changes = {} }: Pick<UpdateRecordContent, "type" | "changes">): string {
  const textOf = (op: string): string => {
    const isPlanned = type === "preview" && op !== "same";
    return isPlanned ? `to ${opText(op)}` : (done[op] ?? opText(op));
  };
  const counted = Object.entries(changes).filter(([, count]) => count > 0);
  return counted.map(([op, count]) => `${count} ${textOf(op)}`).join(", ");
}

function fromRecord({ metadata, record }: UpdateRecord): RunRow {
  return {
    namespace: metadata.namespace ?? "",
    name: record.updateName,
    type: record.type,
    result: record.result,
    startTime: record.startTime,
    endTime: record.endTime,
    summary: changeText(record),
    reason: record.trigger ?? "",
    revision: record.revision ?? "",
    hasRecord: true,
  };
}

function fromUpdate({ metadata, spec = {}, status = {} }: Update): RunRow {
  const { startTime, endTime, summary, message } = status;
  const result = updateState({ status });
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    type: spec.type ?? "",
    result,
    ...(startTime !== undefined && { startTime }),
    ...(endTime !== undefined && { endTime }),
    summary: summary ?? (result === "failed" ? (message ?? "") : ""),
    // The operator writes: Stack NAMESPACE/NAME: PURPOSE.
    reason: spec.message?.replace(/^Stack \S+: /, "") ?? "",
    revision: "",
    hasRecord: false,
  };
}
