/** The decompressed content of a record. */
import type { UpdateRecord } from "@pko/api/browser";
import { decodeContent, type RecordContent } from "@pko/records/browser";
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";

/** Undefined if the record has no content or it is damaged. */
export type Content = RecordContent | undefined | "loading";

const contents = new WeakMap<UpdateRecord, Signal<Content>>();
const none = signal<Content>(undefined);

export function useContent(record: UpdateRecord | undefined): ReadonlySignal<Content> {
  const encoded = record?.record.content;
  if (!record || encoded === undefined) return none;
  const known = contents.get(record);
  if (known) return known;
  const content = signal<Content>("loading");
  contents.set(record, content);
  void decodeContent(encoded).then((decoded) => (content.value = decoded));
  return content;
}
