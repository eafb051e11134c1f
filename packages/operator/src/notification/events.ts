/** The events of a Notification. Pure. */
import { notificationEvents, type NotificationEvent } from "@pko/api";
import type { EventNote } from "@pko/kube";

import * as messages from "./messages.ts";
import type { NotificationPlan } from "./steps.ts";
import type { NotificationView } from "./view.ts";

const eventFor = (reason: NotificationEvent, message: string): EventNote => ({
  type: notificationEvents[reason],
  reason,
  message,
});

/** Only the first of several failures is reported. */
export function notificationEventsFor({ retry }: NotificationView, { outcome }: NotificationPlan): EventNote[] {
  const { news } = outcome;
  switch (news.kind) {
    case "failed":
      return retry ? [] : [eventFor("DeliveryFailed", messages.failing(news.cause))];
    case "dropped":
      return [eventFor("NotificationsDropped", messages.dropped(news.occurrences.length))];
    case "delivered":
    case "started":
    case "none":
      return [];
  }
}
