/** Makes the content of a record fit: what people need least is dropped first, and counted. */
import {
  encodeContent,
  type NumberedEvent,
  type Omitted,
  type PropertyChange,
  type RecordContent,
  type RunEvent,
} from "@pko/records";

/** A part that can be dropped: the values of an event, an event, or a resource. */
interface Part {
  readonly drops: keyof Omitted;
  readonly index: number;
}

export interface Fitted {
  /** As `encodeContent` returns it. */
  readonly encoded: string;
  readonly omitted: Omitted;
}

/** Drops as little as possible. */
export async function fit(content: RecordContent, maxBytes: number): Promise<Fitted> {
  const parts = dropOrder(content);
  const attempt = async (count: number): Promise<Fitted & { readonly fits: boolean }> => {
    const { omitted, ...rest } = drop(content, parts.slice(0, count));
    const encoded = await encodeContent({ ...rest, omitted });
    return { encoded, omitted, fits: (encoded.length / 4) * 3 <= maxBytes };
  };
  let best = await attempt(0);
  if (best.fits) return best;
  // The last count that is too few, and the first one that suffices.
  let [few, enough] = [0, parts.length];
  best = await attempt(enough);
  while (enough - few > 1) {
    const middle = Math.floor((few + enough) / 2);
    const found = await attempt(middle);
    if (found.fits) [enough, best] = [middle, found];
    else few = middle;
  }
  return best;
}

/** Drops until the content has at most `maxChars` of JSON, so that a long run does not fill the agent's memory. */
export function thin(content: RecordContent, maxChars: number): RecordContent {
  let excess = jsonChars(content) - maxChars;
  const parts: Part[] = [];
  for (const part of dropOrder(content)) {
    if (excess <= 0) break;
    parts.push(part);
    excess -= partChars(content, part);
  }
  return parts.length === 0 ? content : drop(content, parts);
}

export const jsonChars = (value: unknown): number => JSON.stringify(value).length;

function partChars({ events, resources }: RecordContent, { drops, index }: Part): number {
  switch (drops) {
    case "values": {
      const event = events[index];
      return event ? jsonChars(event) - jsonChars(withoutValues(event)) : 0;
    }
    case "events":
      return jsonChars(events[index] ?? "");
    case "resources":
      return jsonChars(resources[index] ?? "");
  }
}

/** Lower ranks are dropped first. Resources come between the first three and the rest. */
type Rank = "same" | "started" | "info" | "other" | "error";

function rankOf(event: RunEvent): Rank {
  switch (event.kind) {
    case "resource":
      if (event.phase === "failed") return "error";
      if (event.phase === "started") return "started";
      return event.op === "same" ? "same" : "other";
    case "diagnostic":
      if (event.severity === "error") return "error";
      return event.severity === "warning" ? "other" : "info";
    case "policy":
    case "step":
    case "summary":
      return "error";
    case "permalink":
    case "notice":
      return "other";
  }
}

function dropOrder({ events, resources }: RecordContent): Part[] {
  const byRank = Map.groupBy(events.keys(), (index) => rankOf((events[index] as NumberedEvent).event));
  const ofRank = (rank: Rank): Part[] => (byRank.get(rank) ?? []).map((index) => ({ drops: "events", index }));
  return [
    ...events.flatMap((event, index): Part[] => (countValues(event) > 0 ? [{ drops: "values", index }] : [])),
    ...ofRank("same"),
    ...ofRank("started"),
    ...ofRank("info"),
    ...resources.map((_, index): Part => ({ drops: "resources", index })).toReversed(),
    ...ofRank("other"),
    // The first error usually caused the others.
    ...ofRank("error").toReversed(),
  ];
}

function drop(content: RecordContent, parts: readonly Part[]): RecordContent {
  const { events, resources, omitted } = content;
  const of = (drops: keyof Omitted) => new Set(parts.flatMap((part) => (part.drops === drops ? [part.index] : [])));
  const [values, dropped, droppedResources] = [of("values"), of("events"), of("resources")];
  const lost = [...values].reduce((sum, index) => sum + countValues(events[index]), 0);
  return {
    ...content,
    events: events.flatMap((event, index) => {
      if (dropped.has(index)) return [];
      return [values.has(index) ? withoutValues(event) : event];
    }),
    resources: resources.filter((_, index) => !droppedResources.has(index)),
    omitted: {
      events: omitted.events + dropped.size,
      resources: omitted.resources + droppedResources.size,
      values: omitted.values + lost,
    },
  };
}

function changesIn(numbered: NumberedEvent | undefined): readonly PropertyChange[] {
  return numbered?.event.kind === "resource" ? (numbered.event.changes ?? []) : [];
}

function countValues(numbered: NumberedEvent | undefined): number {
  return changesIn(numbered).reduce((sum, change) => sum + (change.old ? 1 : 0) + (change.new ? 1 : 0), 0);
}

function withoutValues(numbered: NumberedEvent): NumberedEvent {
  const { event } = numbered;
  if (event.kind !== "resource" || !event.changes) return numbered;
  return { ...numbered, event: { ...event, changes: event.changes.map(({ path, kind }) => ({ path, kind })) } };
}
