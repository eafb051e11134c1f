/** Reads UpdateRecords: what is known about runs after their pods, and even their Updates, are gone. */
import { stackNameLabel, type UpdateRecord } from "@pko/api";
import type { RecordContent } from "@pko/records";

import type { Context } from "../context.ts";
import { updateRecords } from "../kinds.ts";
import { look, type Seen } from "../visibility.ts";

/** The newest first. Absent if the cluster has no UpdateRecords yet, or no Stack of this name has any. */
export async function recordsOf(
  { client, namespace }: Pick<Context, "client" | "namespace">,
  stackName: string,
): Promise<Seen<readonly UpdateRecord[]>> {
  const labelSelector = `${stackNameLabel}=${stackName}`;
  const seen = await look("the records of past updates", client.list(updateRecords, { namespace, labelSelector }));
  return seen.kind === "seen" ? { kind: "seen", value: seen.value.items.toSorted(byEnd) } : seen;
}

/** A record has the name of its Update. */
export const findRecord = async (
  { client, namespace }: Pick<Context, "client" | "namespace">,
  updateName: string,
): Promise<Seen<UpdateRecord>> =>
  await look("the record of the update", client.get(updateRecords, { namespace, name: updateName }));

/** The newest first. */
export const byEnd = (a: UpdateRecord, b: UpdateRecord): number =>
  b.record.endTime.localeCompare(a.record.endTime) || b.record.updateName.localeCompare(a.record.updateName);

/** Undefined if the record has no content, or this version cannot read it. */
export async function contentOf({ record }: UpdateRecord): Promise<RecordContent | undefined> {
  if (record.content === undefined) return undefined;
  // Loaded only if a record is read, because it makes every start slower.
  const { decodeContent } = await import("@pko/records");
  return await decodeContent(record.content);
}

/** The newest record whose content lists the stack's resources. */
export async function latestResources(
  records: readonly UpdateRecord[],
): Promise<{ readonly record: UpdateRecord; readonly content: RecordContent } | undefined> {
  for (const record of records) {
    const content = record.record.type === "preview" ? undefined : await contentOf(record);
    if (content && content.resources.length > 0) return { record, content };
  }
  return undefined;
}
