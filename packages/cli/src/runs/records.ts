/** Reads UpdateRecords: what is known about runs after their pods, and even their Updates, are gone. */
import { stackNameLabel, type UpdateRecord } from "@pko/api";
import type { RecordContent } from "@pko/records";

import type { Context } from "../context.ts";
import { updateRecords } from "../kinds.ts";
import { look, type Seen } from "../visibility.ts";

/** The newest first. Absent if the cluster has no UpdateRecords yet, or no Stack of this name has any. */
export const recordsOf = async (
  { client, namespace }: Pick<Context, "client" | "namespace">,
  stackName: string,
): Promise<Seen<readonly UpdateRecord[]>> =>
  await sorted(client.list(updateRecords, { namespace, labelSelector: `${stackNameLabel}=${stackName}` }));

/** Of the namespace, or of all; the newest first. */
export const allRecords = async ({
  client,
  namespace,
  allNamespaces,
}: Pick<Context, "client" | "namespace" | "allNamespaces">): Promise<Seen<readonly UpdateRecord[]>> =>
  await sorted(client.list(updateRecords, allNamespaces ? {} : { namespace }));

async function sorted(list: Promise<{ readonly items: readonly UpdateRecord[] }>) {
  const seen = await look("the records of past updates", list);
  return seen.kind === "seen" ? { kind: "seen" as const, value: seen.value.items.toSorted(byEnd) } : seen;
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

/** A record with its content, which is costly to decode. */
export interface ReadRecord {
  readonly record: UpdateRecord;
  readonly content: RecordContent;
}

/** Those that have a content which this version can read, in the same order. */
export async function decodeRecords(records: readonly UpdateRecord[]): Promise<ReadRecord[]> {
  const read: ReadRecord[] = [];
  for (const record of records) {
    const content = await contentOf(record);
    if (content) read.push({ record, content });
  }
  return read;
}

/** Whether the run changed nothing: its resources and operations are only planned. */
export const isPreview = ({ record }: UpdateRecord): boolean =>
  record.type === "preview" || record.previewOnly === true;

/** The record of an Update that its Stack does not own has only the label. */
export const stackNameIn = ({ metadata, record }: UpdateRecord): string =>
  record.stackName ?? metadata.labels?.[stackNameLabel] ?? "";

/** Whether a resource that the list does not have does not exist. An empty list is complete after a destroy. */
export const isComplete = ({ partialResources, omitted }: RecordContent): boolean =>
  partialResources !== true && omitted.resources === 0;

export interface LatestResources extends ReadRecord {
  /** A later Update whose record has no list. */
  readonly unlisted?: string;
}

/** The newest record whose content lists the stack's resources. `records` are sorted, the newest first. */
export async function latestResources(records: readonly UpdateRecord[]): Promise<LatestResources | undefined> {
  let unlisted: string | undefined;
  for (const record of records) {
    const content = isPreview(record) ? undefined : await contentOf(record);
    if (!content) continue;
    const isListed = content.resources.length > 0 || isComplete(content);
    if (isListed) return { record, content, ...(unlisted !== undefined && { unlisted }) };
    unlisted ??= record.record.updateName;
  }
  return undefined;
}
