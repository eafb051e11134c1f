/** What follows from the result of a delivery. Pure. */
import { jittered } from "../../shared/pauses.ts";
import { maxAgeMs } from "../occurrences/occurrence.ts";
import type { NotificationPlan } from "../steps.ts";
import type { NotificationView } from "../view.ts";
import { currentState, nothingNew } from "./state.ts";

const firstPauseMs = 5000;
const longestPauseMs = 10 * 60_000;
/** However long the server asks for: what waits is dropped after that time anyway. */
const longestRetryAfterMs = maxAgeMs;

export function deliveryEnded({ delivery }: NotificationView): NotificationPlan | undefined {
  if (delivery.kind !== "ended" || delivery.sent.result !== "delivered") return undefined;
  const { occurrences } = delivery;
  return { steps: [], outcome: { state: { kind: "delivering" }, news: { kind: "delivered", occurrences } } };
}

export function deliveryFailed({ now, delivery, retry, notification }: NotificationView): NotificationPlan | undefined {
  if (delivery.kind !== "ended" || delivery.sent.result === "delivered") return undefined;
  const { message: cause, retryAfterMs = 0 } = delivery.sent;
  const growing = Math.min(longestPauseMs, firstPauseMs * 2 ** (retry?.failures ?? 0));
  const pause = jittered(growing, notification.metadata.uid ?? "");
  const retryAt = now + Math.max(pause, Math.min(longestRetryAfterMs, retryAfterMs));
  const news = { kind: "failed", cause, retryAt } as const;
  return { steps: [], outcome: { state: { kind: "failing", cause }, news }, requeueAt: retryAt };
}

export function dropped(view: NotificationView): NotificationPlan | undefined {
  const { now, inbox } = view;
  const occurrences = [...inbox.overflow, ...inbox.pending.filter(({ time }) => now - time > maxAgeMs)];
  if (occurrences.length === 0) return undefined;
  return { steps: [], outcome: { state: currentState(view), news: { kind: "dropped", occurrences } } };
}

export function sending(view: NotificationView): NotificationPlan | undefined {
  if (view.delivery.kind !== "sending") return undefined;
  return { steps: [], outcome: { state: currentState(view), news: nothingNew } };
}

export function waitingToRetry(view: NotificationView): NotificationPlan | undefined {
  const { now, retry, inbox } = view;
  const [oldest] = inbox.pending;
  if (!retry || !oldest || retry.at <= now) return undefined;
  const requeueAt = Math.min(retry.at, oldest.time + maxAgeMs + 1);
  return { steps: [], outcome: { state: currentState(view), news: nothingNew }, requeueAt };
}
