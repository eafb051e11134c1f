/** What events repeat about the resources of the same record. Without the schema library, because browsers use it, too. */
import type { RecordContent, RecordedResource } from "./record.ts";
import type { ResourceEvent } from "./run-event.ts";

/** What an event says about a resource besides what happens to it. */
const placeFields = ["parent", "provider", "id"] as const;

/**
 * Leaves out of events what `resources` says about the same resource: gzip does not find repetitions that are so far apart.
 * `decodeContent` adds it again.
 */
export function withoutRepetitions(content: RecordContent): RecordContent {
  return mapResourceEvents(content, (event, resource) => {
    const copy = { ...event };
    for (const field of placeFields) if (copy[field] === resource[field]) delete copy[field];
    return copy;
  });
}

/** Undoes `withoutRepetitions`. */
export function withRepetitions(content: RecordContent): RecordContent {
  return mapResourceEvents(content, (event, resource) => {
    const copy = { ...event };
    for (const field of placeFields) {
      const value = resource[field];
      // The start of a step has only the parent.
      const isReported = field === "parent" || event.phase !== "started";
      if (isReported && value !== undefined) copy[field] ??= value;
    }
    return copy;
  });
}

function mapResourceEvents(
  content: RecordContent,
  map: (event: ResourceEvent, resource: RecordedResource) => ResourceEvent,
): RecordContent {
  const byUrn = new Map(content.resources.map((resource) => [resource.urn, resource]));
  const events = content.events.map((numbered) => {
    const { event } = numbered;
    const resource = event.kind === "resource" ? byUrn.get(event.urn) : undefined;
    return event.kind === "resource" && resource ? { ...numbered, event: map(event, resource) } : numbered;
  });
  return { ...content, events };
}
