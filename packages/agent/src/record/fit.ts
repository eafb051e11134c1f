/** Makes the content of a record fit: what people need least is dropped first, and counted. */
import {
  encodeContent,
  withoutRepetitions,
  type NumberedEvent,
  type Omitted,
  type PropertyChange,
  type RecordContent,
  type RecordedResource,
  type RunEvent,
} from "@pko/records";

/** A part that can be dropped: the values of an event, an event, the dependencies of a resource, or a resource. */
interface Part {
  readonly drops: keyof Omitted;
  readonly index: number;
}

export interface Fitted {
  /** As `encodeContent` returns it. */
  readonly encoded: string;
  readonly omitted: Omitted;
}

/** A record that is nearly full is good enough: each attempt to keep more compresses everything again. */
const goodFill = 0.97;

/** Drops little more than necessary. */
export async function fit(content: RecordContent, maxBytes: number): Promise<Fitted> {
  const parts = dropOrder(content);
  const chars = charsLeft(content, parts);
  const attempt = async (count: number): Promise<Attempt> => {
    const { omitted, ...rest } = drop(content, parts.slice(0, count));
    // Only now: what a dropped resource would have said about its events must stay in them.
    const encoded = await encodeContent(withoutRepetitions({ ...rest, omitted }));
    return { encoded, omitted, count, chars: chars[count] ?? 0, bytes: (encoded.length / 4) * 3 };
  };
  let large = await attempt(0);
  if (large.bytes <= maxBytes) return large;
  let best = await attempt(parts.length);
  for (let round = 1; best.count - large.count > 1 && best.bytes < goodFill * maxBytes; round += 1) {
    // Halving now and then limits the number of rounds if the parts compress differently.
    const isEstimate = round % 4 !== 0;
    const middle = Math.floor((large.count + best.count) / 2);
    const next = isEstimate ? estimate({ large, best, chars }, maxBytes) : middle;
    const found = await attempt(Math.min(Math.max(next, large.count + 1), best.count - 1));
    if (found.bytes <= maxBytes) best = found;
    else large = found;
  }
  return best;
}

interface Attempt extends Fitted {
  /** How many parts were dropped. */
  readonly count: number;
  /** Of JSON. */
  readonly chars: number;
  /** Compressed. */
  readonly bytes: number;
}

/** How many parts to drop, if the size between a record that is too large and one that fits grows evenly with its JSON. */
function estimate(
  { large, best, chars }: { readonly large: Attempt; readonly best: Attempt; readonly chars: readonly number[] },
  maxBytes: number,
): number {
  const wanted = ((1 + goodFill) / 2) * maxBytes;
  const share = (wanted - best.bytes) / (large.bytes - best.bytes);
  const wantedChars = best.chars + share * (large.chars - best.chars);
  return chars.findIndex((left) => left <= wantedChars);
}

/** The characters of JSON that are left after each part has been dropped. */
function charsLeft(content: RecordContent, parts: readonly Part[]): number[] {
  let left = jsonChars(content);
  return [left, ...parts.map((part) => (left -= partChars(content, part)))];
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

/** Values are dropped before their events, and dependencies before their resources. */
function partChars({ events, resources }: RecordContent, { drops, index }: Part): number {
  const [event, resource] = [events[index], resources[index]];
  switch (drops) {
    case "values":
      return event ? jsonChars(event) - jsonChars(withoutValues(event)) : 0;
    case "events":
      return event ? jsonChars(withoutValues(event)) + 1 : 0;
    case "dependencies":
      return resource ? jsonChars(resource) - jsonChars(withoutDependencies(resource)) : 0;
    case "resources":
      return resource ? jsonChars(withoutDependencies(resource)) + 1 : 0;
  }
}

/** Lower ranks are dropped first. Resources are dropped together with `other` events. */
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
  const ofResources = (drops: Part["drops"]): Part[] =>
    resources.map((_, index): Part => ({ drops, index })).toReversed();
  return [
    ...events.flatMap((event, index): Part[] => (countValues(event) > 0 ? [{ drops: "values", index }] : [])),
    ...ofRank("same"),
    ...ofRank("started"),
    ...ofRank("info"),
    ...ofResources("dependencies").filter(({ index }) => resources[index]?.dependencies?.length),
    // Last first: parents come before their children, and a resource needs less space together with its event.
    ...inTurns(ofResources("resources"), ofRank("other").toReversed()),
    // The first error usually caused the others.
    ...ofRank("error").toReversed(),
  ];
}

/** First from the longer list, until as much is left of both, so that a run with few changes in a large stack keeps them. */
function inTurns(some: readonly Part[], others: readonly Part[]): Part[] {
  const withLeft = (parts: readonly Part[]) => parts.map((part, index) => ({ part, left: parts.length - index }));
  return [...withLeft(some), ...withLeft(others)].toSorted((a, b) => b.left - a.left).map(({ part }) => part);
}

function drop(content: RecordContent, parts: readonly Part[]): RecordContent {
  const of = (drops: Part["drops"]) => new Set(parts.flatMap((part) => (part.drops === drops ? [part.index] : [])));
  const [values, events, dependencies, resources] = [of("values"), of("events"), of("dependencies"), of("resources")];
  const { omitted } = content;
  const lostDependencies = sum(dependencies, (index) => content.resources[index]?.dependencies?.length ?? 0);
  return {
    ...content,
    events: content.events.flatMap((event, index) => {
      if (events.has(index)) return [];
      return [values.has(index) ? withoutValues(event) : event];
    }),
    resources: content.resources.flatMap((resource, index) => {
      if (resources.has(index)) return [];
      return [dependencies.has(index) ? withoutDependencies(resource) : resource];
    }),
    omitted: {
      ...omitted,
      events: omitted.events + events.size,
      resources: omitted.resources + resources.size,
      values: omitted.values + sum(values, (index) => countValues(content.events[index])),
      ...(lostDependencies > 0 && { dependencies: (omitted.dependencies ?? 0) + lostDependencies }),
    },
  };
}

const sum = (indexes: ReadonlySet<number>, count: (index: number) => number): number =>
  [...indexes].reduce((total, index) => total + count(index), 0);

function withoutDependencies(resource: RecordedResource): RecordedResource {
  const { dependencies: _, ...rest } = resource;
  return rest;
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
