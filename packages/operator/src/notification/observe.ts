/** All reads of a Notification's reconcile. */
import type { Notification } from "@pko/api";
import type { Key, Moment, Store } from "@pko/kube";

import type { Deliveries } from "./delivery/deliveries.ts";
import { retryIn } from "./memory.ts";
import type { Inboxes } from "./occurrences/inboxes.ts";
import type { Targets } from "./targets.ts";
import { basisOf, type Memory, type NotificationView } from "./view.ts";

export interface NotificationWorld {
  readonly notifications: Store<Notification>;
  readonly targets: Targets;
  readonly inboxes: Inboxes;
  readonly deliveries: Deliveries;
}

/** Undefined for a Notification that does not exist. */
export async function observeNotification(
  { notifications, targets, inboxes, deliveries }: NotificationWorld,
  key: Key,
  moment: Moment<Memory>,
): Promise<NotificationView | undefined> {
  const notification = notifications.get(key);
  if (!notification) return undefined;
  const { view: target, secretObject } = await targets.read(notification, moment.signal);
  const secret = secretObject && { secretObject };
  const retry = retryIn(moment, basisOf({ notification, ...secret }));
  return {
    now: moment.now,
    notification,
    target,
    ...secret,
    inbox: inboxes.read(notification),
    delivery: deliveries.stateOf(key),
    ...(retry && { retry }),
  };
}
