/** What to do for a Notification: the first rule that applies decides. Pure. */
import { firstDecision } from "@pko/kube";

import type { NotificationPlan } from "../steps.ts";
import type { NotificationView } from "../view.ts";
import { deliveryEnded, deliveryFailed, dropped, sending, waitingToRetry } from "./deliveries.ts";
import { collecting, due, idle } from "./grouping.ts";
import { starting, suspended, unusableTarget } from "./state.ts";

type NotificationRule = (view: NotificationView) => NotificationPlan | undefined;

const rules: readonly NotificationRule[] = [
  suspended, // suspended: send nothing, and forget what happens
  starting, // new or resumed: report what happens from now on, and nothing before
  deliveryEnded, // a message was delivered: record its events as done
  deliveryFailed, // a message was not delivered: record why, and when it is sent again
  dropped, // events are older than an hour, or too many: record them as lost
  unusableTarget, // the Secret or the URL is missing or invalid: wait for a change
  sending, // a message is on its way: wait for its result
  waitingToRetry, // the last delivery failed: wait
  collecting, // something happened: wait for more, so that one message reports all of it
  due, // send a message
  idle, // nothing has happened
];

export const planNotification = (view: NotificationView): NotificationPlan => firstDecision(rules, view);
