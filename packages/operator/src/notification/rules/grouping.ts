/** When a message is sent, and what it reports. Pure. */
import { batchFor } from "../payload/payload.ts";
import type { NotificationPlan } from "../steps.ts";
import type { NotificationView } from "../view.ts";
import { currentState, nothingNew } from "./state.ts";

const defaultGroupSeconds = 30;

export function collecting(view: NotificationView): NotificationPlan | undefined {
  const { now, inbox, notification, retry } = view;
  const groupMs = (notification.spec.groupSeconds ?? defaultGroupSeconds) * 1000;
  // What failed has been collected before.
  if (retry || inbox.pending.length === 0 || inbox.waitedMs >= groupMs) return undefined;
  const requeueAt = now + groupMs - inbox.waitedMs;
  return { steps: [], outcome: { state: currentState(view), news: nothingNew }, requeueAt };
}

export function due(view: NotificationView): NotificationPlan | undefined {
  const { target, inbox, notification } = view;
  if (inbox.pending.length === 0 || target.kind !== "usable") return undefined;
  const occurrences = batchFor(notification.spec.type, inbox.pending);
  return {
    steps: [{ kind: "send", target: target.target, occurrences }],
    outcome: { state: currentState(view), news: nothingNew },
  };
}

/** Applies to every view. */
export function idle(view: NotificationView): NotificationPlan {
  return { steps: [], outcome: { state: currentState(view), news: nothingNew } };
}
