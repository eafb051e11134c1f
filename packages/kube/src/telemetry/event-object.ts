/** Event objects of core/v1. */
import { timestamp } from "../timestamp.ts";
import type { Event, ObjectReference } from "kubernetes-types/core/v1";
import type { ApiObject } from "../client/builtin.ts";
import { resource } from "../resource.ts";

type EventObject = ApiObject<Event>;

export const eventResource = resource<EventObject>({
  apiVersion: "v1",
  kind: "Event",
  plural: "events",
  namespaced: true,
});

export interface EventDetails {
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

export function newEvent(details: EventDetails, reporter: Reporter): EventObject & { metadata: { name: string } } {
  const { about, type, reason, message, firstAt } = details;
  return {
    apiVersion: "v1",
    kind: "Event",
    // Events about cluster-scoped objects are in "default", where `kubectl describe` finds them.
    metadata: { name: eventName(about.name ?? ""), namespace: about.namespace ?? "default" },
    involvedObject: about,
    type,
    reason,
    message,
    firstTimestamp: timestamp(firstAt),
    ...repeatedEvent(details),
    source: { component: reporter.component },
    reportingComponent: reporter.component,
    reportingInstance: reporter.instance ?? "",
  };
}

/** What changes when the same event is recorded again. */
export function repeatedEvent({ count, lastAt }: EventDetails): { count: number; lastTimestamp: string } {
  return { count, lastTimestamp: timestamp(lastAt) };
}

/** Unique, and sorted next to the object's name. */
function eventName(about: string): string {
  const unique = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  return `${about.slice(0, 253 - 17).replace(/[.-]+$/, "")}.${unique}`;
}
