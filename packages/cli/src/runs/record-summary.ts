/** A record in a line, in the form in which an Update is summarized. Pure. */
import type { UpdateRecord } from "@pko/api";
import { defined } from "@pko/kube";

import type { UpdateSummary } from "../documents.ts";

const changeTexts: readonly (readonly [op: string, planned: string, done: string])[] = [
  ["create", "to create", "created"],
  ["update", "to update", "updated"],
  ["replace", "to replace", "replaced"],
  ["delete", "to delete", "deleted"],
  ["import", "to import", "imported"],
  ["same", "unchanged", "unchanged"],
];

/** As the operator summarizes the changes of an Update. */
export function changesText(changes: Readonly<Record<string, number>>, isPlanned: boolean): string {
  return changeTexts
    .flatMap(([op, planned, done]) => {
      const count = changes[op] ?? 0;
      return count > 0 ? [`${count} ${isPlanned ? planned : done}`] : [];
    })
    .join(", ");
}

export function summarizeRecord({ metadata, record }: UpdateRecord): UpdateSummary {
  const { updateName, type, pulumiStack, result, changes = {}, message, trigger } = record;
  const isOther = result === "cancelled" || result === "interrupted";
  return defined({
    namespace: metadata.namespace ?? "",
    name: updateName,
    type,
    stack: pulumiStack,
    state: result === "succeeded" ? ("succeeded" as const) : ("failed" as const),
    startTime: record.startTime,
    endTime: record.endTime,
    summary: changesText(changes, type === "preview") || undefined,
    message,
    errorClass: record.errorClass ?? (isOther ? result : undefined),
    reason: trigger?.replace(/^Stack \S+: /, ""),
    revision: record.revision,
    permalink: record.permalink,
    recorded: true,
  });
}

/** Updates and the records of those that are gone, the newest first. */
export function mergeHistory(updates: readonly UpdateSummary[], records: readonly UpdateRecord[]): UpdateSummary[] {
  const known = new Set(updates.map(({ name }) => name));
  const gone = records.filter(({ record }) => !known.has(record.updateName)).map(summarizeRecord);
  // An Update that has not started is newer than all that have.
  const time = ({ startTime }: UpdateSummary): string => startTime ?? "9999";
  return [...updates, ...gone].toSorted((a, b) => time(b).localeCompare(time(a)));
}
