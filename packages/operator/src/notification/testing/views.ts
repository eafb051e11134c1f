/** Occurrences and views for tests. */
import type { Notification, NotificationSpec, NotificationStatus, OccurrenceKind } from "@pko/api";

import type { Occurrence } from "../occurrences/occurrence.ts";
import type { NotificationView } from "../view.ts";

export const now = Date.UTC(2030, 0, 1, 12);

export function occurrenceAt(time: number, facts: Partial<Occurrence> = {}): Occurrence {
  const kind: OccurrenceKind = facts.kind ?? "UpdateFailed";
  const stack = facts.stack ?? "web";
  const id = new Bun.CryptoHasher("sha256").update(`${kind} ${stack} ${time}`).digest("hex").slice(0, 32);
  return { id, kind, time, stack, message: "the program failed", update: `${stack}-up`, operation: "up", ...facts };
}

export function notification(spec: Partial<NotificationSpec> = {}, status?: NotificationStatus): Notification {
  return {
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Notification",
    metadata: { name: "chat", namespace: "prod", uid: "uid-1", generation: 2 },
    spec: { type: "Slack", secretRef: { name: "chat" }, ...spec },
    ...(status && { status }),
  };
}

export const started: NotificationStatus = { cursor: { time: "2030-01-01T11:00:00Z" } };

export function viewOf(changes: Partial<NotificationView> = {}): NotificationView {
  return {
    now,
    notification: notification({}, started),
    target: { kind: "usable", target: { url: new URL("https://hooks.example.com/secret-path") } },
    inbox: { pending: [], waitedMs: 0, overflow: [] },
    delivery: { kind: "none" },
    ...changes,
  };
}
