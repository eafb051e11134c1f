/** Whether a Notification can and may send anything. Pure. */
import type { NotificationStall } from "@pko/api";

import { findCondition } from "../../shared/objects/conditions.ts";
import * as messages from "../messages.ts";
import { maxAgeMs } from "../occurrences/occurrence.ts";
import type { State } from "../outcome.ts";
import type { NotificationPlan } from "../steps.ts";
import type { NotificationView } from "../view.ts";

export const nothingNew = { kind: "none" } as const;

export function suspended({ notification }: NotificationView): NotificationPlan | undefined {
  if (!notification.spec.suspend) return undefined;
  return { steps: [], outcome: { state: { kind: "suspended" }, news: nothingNew } };
}

export function starting(view: NotificationView): NotificationPlan | undefined {
  const { notification } = view;
  const wasSuspended = findCondition(notification, "Ready")?.reason === "NotificationSuspended";
  if (notification.status?.cursor && !wasSuspended) return undefined;
  return { steps: [], outcome: { state: currentState(view), news: { kind: "started" } } };
}

export function unusableTarget(view: NotificationView): NotificationPlan | undefined {
  const state = stalledBy(view);
  if (!state) return undefined;
  const [oldest] = view.inbox.pending;
  return {
    steps: [],
    outcome: { state, news: nothingNew },
    ...(oldest && { requeueAt: oldest.time + maxAgeMs + 1 }),
  };
}

/** The state while no rule has to change it. */
export function currentState(view: NotificationView): State {
  const stalled = stalledBy(view);
  if (stalled) return stalled;
  return view.retry ? { kind: "failing", cause: view.retry.cause } : { kind: "delivering" };
}

function stalledBy({ target, notification }: NotificationView): State | undefined {
  const name = notification.spec.secretRef?.name ?? "";
  const stalled = (reason: NotificationStall, message: string): State => ({ kind: "stalled", reason, message });
  switch (target.kind) {
    case "usable":
      return undefined;
    case "secretMissing":
      return stalled("SecretMissing", messages.secretMissing(name));
    case "secretForbidden":
      return stalled("SecretMissing", messages.secretForbidden(name));
    case "urlMissing":
      return stalled("SecretMissing", messages.urlMissing(name));
    case "urlInvalid":
      return stalled("TargetInvalid", messages.urlInvalid);
    case "tokenInvalid":
      return stalled("TargetInvalid", messages.tokenInvalid(name));
    case "caInvalid":
      return stalled("TargetInvalid", messages.caInvalid(name));
  }
}
