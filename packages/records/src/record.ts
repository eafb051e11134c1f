/** The content of an UpdateRecord: the events of a run and its resources, compressed. */
import { Type, type Static } from "typebox";
import { Check } from "typebox/value";
import { decompress } from "./decompress.ts";
import { maxIdChars, maxUrnChars } from "./limits.ts";
import { withRepetitions } from "./repetitions.ts";
import { NumberedEvent } from "./run-event.ts";

/** Changes only if a reader of this version would misunderstand the content. */
const contentVersion = 1;

const urn = Type.String({ maxLength: maxUrnChars });

/** A resource of the stack after the run, without its properties. */
export const RecordedResource = Type.Object({
  urn,
  parent: Type.Optional(urn),
  provider: Type.Optional(urn),
  id: Type.Optional(Type.String({ maxLength: maxIdChars })),
  /** URNs. Absent if they are unknown or did not fit. */
  dependencies: Type.Optional(Type.Array(urn)),
});
export type RecordedResource = Static<typeof RecordedResource>;

const count = Type.Integer({ minimum: 0 });

/** What did not fit into the record. */
export const Omitted = Type.Object({
  events: count,
  resources: count,
  /** Old and new values of properties. */
  values: count,
  /** Dependencies of resources that the record contains otherwise. Absent if there are none. */
  dependencies: Type.Optional(count),
});
export type Omitted = Static<typeof Omitted>;

export const RecordContent = Type.Object({
  version: Type.Literal(contentVersion),
  events: Type.Array(NumberedEvent),
  resources: Type.Array(RecordedResource),
  /** True if the stack may have more resources: a run with targets, or one that failed, does not visit all of them. */
  partialResources: Type.Optional(Type.Boolean()),
  omitted: Omitted,
});
export type RecordContent = Static<typeof RecordContent>;

export const emptyContent: RecordContent = {
  version: contentVersion,
  events: [],
  resources: [],
  omitted: { events: 0, resources: 0, values: 0 },
};

/** Gzip, then base64: the form in which an UpdateRecord has it. Runs in browsers, too. */
export async function encodeContent(content: RecordContent): Promise<string> {
  const text = new Blob([JSON.stringify(content)]).stream();
  const bytes = await new Response(text.pipeThrough(new CompressionStream("gzip"))).bytes();
  return bytes.toBase64();
}

/** Undefined if it is damaged or of a later version. */
export async function decodeContent(encoded: string): Promise<RecordContent | undefined> {
  const value = await decompress(encoded);
  return Check(RecordContent, value) ? withRepetitions(value) : undefined;
}
