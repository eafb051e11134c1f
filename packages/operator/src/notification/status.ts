/** Computes the status of a Notification. Pure. */
import type { Condition, NotificationCursor, NotificationStatus } from "@pko/api";
import { timestamp } from "@pko/kube";

import { conditionAt } from "../shared/objects/conditions.ts";
import * as messages from "./messages.ts";
import { advance, cursorAt, cursorIn } from "./occurrences/cursor.ts";
import type { Occurrence } from "./occurrences/occurrence.ts";
import { toRecord } from "./occurrences/unsent.ts";
import type { News, State } from "./outcome.ts";
import type { NotificationPlan } from "./steps.ts";
import type { NotificationView } from "./view.ts";

export function notificationStatus(view: NotificationView, { outcome }: NotificationPlan): NotificationStatus {
  const { state, news } = outcome;
  const { metadata, status = {} } = view.notification;
  const left = leftAfter(view, news);
  const cursor = cursorAfter(view, news, left);
  const unsent = toRecord(left);
  return {
    observedGeneration: metadata.generation ?? 0,
    ...(cursor && { cursor }),
    ...(unsent.length > 0 && { unsent }),
    ...results(view, news),
    ...counts(status, news),
    conditions: conditionsFor(view, state),
  };
}

/** They only have to be there after a restart: written at most once a second. */
export function withoutProgress(status: NotificationStatus): object {
  const { unsent: _, ...rest } = status;
  return rest;
}

function leftAfter({ inbox }: NotificationView, news: News): readonly Occurrence[] {
  if (news.kind === "started") return [];
  if (news.kind !== "delivered" && news.kind !== "dropped") return inbox.pending;
  const done = new Set(news.occurrences.map(({ id }) => id));
  return inbox.pending.filter(({ id }) => !done.has(id));
}

function cursorAfter(
  { now, notification }: NotificationView,
  news: News,
  left: readonly Occurrence[],
): NotificationCursor | undefined {
  const cursor = cursorIn(notification, now);
  switch (news.kind) {
    case "started":
      return cursorAt(now);
    case "delivered":
    case "dropped":
      return advance(cursor ?? cursorAt(now), news.occurrences, left);
    case "failed":
    case "none":
      return cursor;
  }
}

function results({ now, notification }: NotificationView, news: News): NotificationStatus {
  const { lastDelivery, lastFailure } = notification.status ?? {};
  const before = { ...(lastDelivery && { lastDelivery }), ...(lastFailure && { lastFailure }) };
  const time = timestamp(now);
  switch (news.kind) {
    case "delivered":
      return { ...before, lastDelivery: { time, events: news.occurrences.length } };
    case "failed":
      return { ...before, lastFailure: { time, message: news.cause } };
    case "dropped":
    case "started":
    case "none":
      return before;
  }
}

function counts({ delivered, dropped }: NotificationStatus, news: News): NotificationStatus {
  const more = (kind: News["kind"]): number =>
    news.kind === kind && "occurrences" in news ? news.occurrences.length : 0;
  const all = { delivered: (delivered ?? 0) + more("delivered"), dropped: (dropped ?? 0) + more("dropped") };
  return { ...(all.delivered > 0 && { delivered: all.delivered }), ...(all.dropped > 0 && { dropped: all.dropped }) };
}

function conditionsFor({ notification, now }: NotificationView, state: State): Condition[] {
  const ready = (reason: string, message: string): Condition => {
    const status = state.kind === "delivering" ? "True" : "False";
    return conditionAt(notification, { type: "Ready", status, reason, message }, now);
  };
  switch (state.kind) {
    case "delivering":
      return [ready("Delivering", messages.delivering(notification.spec.type))];
    case "failing":
      return [ready("DeliveryFailed", messages.failing(state.cause))];
    case "suspended":
      return [ready("NotificationSuspended", messages.suspended)];
    case "stalled": {
      const { reason, message } = state;
      return [
        ready("NotReadyStalled", message),
        conditionAt(notification, { type: "Stalled", status: "True", reason, message }, now),
      ];
    }
  }
}
