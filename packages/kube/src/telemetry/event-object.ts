/** Events as the API server wants them. */
import { timestamp } from "../timestamp.ts";
import type { Event, ObjectReference } from "kubernetes-types/core/v1";
import type { Known } from "../client/builtin.ts";
import { resource } from "../resource.ts";

type EventObject = Known<Event>;

export const eventResource = resource<EventObject>({
  apiVersion: "v1",
  kind: "Event",
  plural: "events",
  namespaced: true,
});

export interface Happening {
  readonly about: ObjectReference;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
}

interface Reporter {
  readonly component: string;
  readonly instance?: string;
}

export function newEvent(happening: Happening, reporter: Reporter): EventObject & { metadata: { name: string } } {
  const { about, type, reason, message, firstAt } = happening;
  return {
    apiVersion: "v1",
    kind: "Event",
    // Events about cluster-scoped objects live in "default": that is where `describe` looks for them.
    metadata: { name: eventName(about.name ?? ""), namespace: about.namespace ?? "default" },
    involvedObject: about,
    type,
    reason,
    message,
    firstTimestamp: timestamp(firstAt),
    ...repeatedEvent(happening),
    source: { component: reporter.component },
    reportingComponent: reporter.component,
    reportingInstance: reporter.instance ?? "",
  };
}

/** What changes when the same is told once more. */
export function repeatedEvent({ count, lastAt }: Happening): { count: number; lastTimestamp: string } {
  return { count, lastTimestamp: timestamp(lastAt) };
}

/** Unique, and next to its object in a sorted list. */
function eventName(about: string): string {
  const unique = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  return `${about.slice(0, 253 - 17).replace(/[.-]+$/, "")}.${unique}`;
}
