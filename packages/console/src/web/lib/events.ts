/** Kubernetes events about a Stack and its objects, the newest first. Pure. */
import { podNameOf, workspaceNameOf } from "@pko/api/browser";

import type { ObjectMeta } from "./collection.ts";

export interface KubernetesEvent extends ObjectMeta {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly note?: string;
  readonly count?: number;
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
  readonly series?: { readonly lastObservedTime?: string };
  readonly involvedObject?: { readonly kind?: string; readonly name?: string };
  readonly regarding?: { readonly kind?: string; readonly name?: string };
}

export interface EventRow {
  readonly id: string;
  readonly type: string;
  readonly reason: string;
  readonly object: string;
  readonly time: string;
  readonly message: string;
}

interface Subjects {
  readonly stack: string;
  readonly updates: ReadonlySet<string>;
}

export function aboutStack(events: readonly KubernetesEvent[], { stack, updates }: Subjects): EventRow[] {
  const workspace = workspaceNameOf(stack);
  const isAbout = (kind: string, name: string): boolean =>
    (kind === "Stack" && name === stack) ||
    (kind === "Workspace" && name === workspace) ||
    (kind === "Pod" && name === podNameOf(workspace)) ||
    (kind === "Update" && updates.has(name));
  return events
    .filter((event) => isAbout(subject(event).kind, subject(event).name))
    .map(rowOf)
    .toSorted((a, b) => b.time.localeCompare(a.time) || a.id.localeCompare(b.id));
}

/** Of the core API, or of events.k8s.io. */
function subject({ involvedObject, regarding }: KubernetesEvent): { kind: string; name: string } {
  const { kind = "", name = "" } = involvedObject ?? regarding ?? {};
  return { kind, name };
}

function rowOf(event: KubernetesEvent): EventRow {
  const { kind, name } = subject(event);
  const { type = "Normal", reason = "", message, note, series, lastTimestamp, eventTime, metadata } = event;
  return {
    id: metadata.name ?? "",
    type,
    reason,
    object: `${kind} ${name}`,
    time: series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? "",
    message: message ?? note ?? "",
  };
}
