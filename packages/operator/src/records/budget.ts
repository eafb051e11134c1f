/** Which records have to be deleted, so that all of them together stay within their budget. Pure. */
import type { StoredRecord } from "./stored-record.ts";

/** What is freed beyond the budget, so that not every new record leads to a deletion. */
const slack = 0.05;

/** The oldest first; empty while the records are within the budget. */
export function excessRecords(records: readonly StoredRecord[], maxTotalBytes: number): StoredRecord[] {
  let total = records.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= maxTotalBytes) return [];
  const excess: StoredRecord[] = [];
  for (const record of records.toSorted(byAge)) {
    if (total <= maxTotalBytes * (1 - slack)) break;
    excess.push(record);
    total -= record.bytes;
  }
  return excess;
}

const ageKey = ({ createdAt, namespace, name }: StoredRecord): string => `${createdAt} ${namespace}/${name}`;

const byAge = (a: StoredRecord, b: StoredRecord): number => (ageKey(a) < ageKey(b) ? -1 : 1);
