/** The Notification controller: it reports what happens to the Stacks of a namespace. */
import { fieldManagers, type Notification, type Stack, type Update } from "@pko/api";
import {
  controller,
  keyOf,
  metricsRegistry,
  reconciler,
  silentLogger,
  stepDone,
  watching,
  type Client,
  type Clock,
  type Controller,
  type EventRecorder,
  type Key,
  type Logger,
  type Reflector,
  type Registry,
} from "@pko/kube";

import type { ReferencePoller } from "../inputs/reference-poller.ts";
import { notifications } from "../kinds.ts";
import { Deliveries } from "./delivery/deliveries.ts";
import { sender, type SendSettings } from "./delivery/send.ts";
import { notificationEventsFor } from "./events.ts";
import { remember } from "./memory.ts";
import { observeNotification } from "./observe.ts";
import { Inboxes } from "./occurrences/inboxes.ts";
import type { Outcome } from "./outcome.ts";
import { payloadFor } from "./payload/payload.ts";
import { planNotification } from "./rules/index.ts";
import { progressMs } from "../shared/pauses.ts";
import { notificationStatus, withoutProgress } from "./status.ts";
import type { Step } from "./steps.ts";
import { Targets } from "./targets.ts";
import type { Memory, NotificationView } from "./view.ts";

export interface NotificationControllerOptions {
  /** Must be fenced. */
  readonly client: Client;
  readonly events: EventRecorder;
  readonly reflectors: {
    readonly notifications: Reflector<Notification>;
    readonly stacks: Reflector<Stack>;
    /** With `updateIndexers`. */
    readonly updates: Reflector<Update>;
  };
  /** Stopped by the caller. */
  readonly references: ReferencePoller;
  readonly sending: SendSettings;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export function notificationController(options: NotificationControllerOptions): Controller {
  const { client, events, reflectors, references, sending, clock } = options;
  const { log = silentLogger, metrics = metricsRegistry() } = options;
  const { stacks, updates } = reflectors;
  const inboxes = new Inboxes({ stacks: stacks.store, updates: updates.store }, clock);
  const deliveries = new Deliveries({ send: sender(sending), log, metrics });
  const targets = new Targets(client);
  const world = { notifications: reflectors.notifications.store, targets, inboxes, deliveries };
  const countDropped = droppedCounter(metrics);
  const self: Controller = controller({
    name: "notification-controller",
    reflector: reflectors.notifications,
    watches: [
      watching({ reflector: stacks, map: inboxes.ofStack }),
      watching({ reflector: updates, map: inboxes.ofUpdate }),
    ],
    concurrency: 2,
    log,
    metrics,
    ...(clock && { clock }),
    reconcile: reconciler<Notification, NotificationView, Step, Outcome, Memory>({
      resource: notifications,
      client,
      events,
      fieldManager: fieldManagers.notificationStatus,
      observe: (key, moment) => observeNotification(world, key, moment),
      objectIn: ({ notification }) => notification,
      plan: planNotification,
      perform(step, { view }) {
        startDelivery(deliveries, view, step);
        return Promise.resolve(stepDone);
      },
      status: notificationStatus,
      progress: { without: withoutProgress, everyMs: progressMs.run },
      eventsOf: notificationEventsFor,
      remember,
      publish(key, { view, plan }) {
        const { state, news } = plan.outcome;
        if (news.kind === "dropped") countDropped(news.occurrences.length);
        if (state.kind === "suspended") deliveries.forget(key);
        if (news.kind === "delivered" || news.kind === "failed") deliveries.recorded(key);
        const wake = (): void => {
          targets.forget(key);
          self.enqueue(key);
        };
        references.follow(referenceUser(key), { objects: view.secretObject ? [view.secretObject] : [], wake });
      },
      cleanUp(key) {
        inboxes.forget(key);
        deliveries.forget(key);
        targets.forget(key);
        references.forget(referenceUser(key));
      },
    }),
    whileRunning() {
      deliveries.wake = (key) => self.enqueue(key);
      return () => {
        inboxes.clear();
        deliveries.clear();
        targets.clear();
      };
    },
  });
  return self;
}

function startDelivery(deliveries: Deliveries, { notification }: NotificationView, step: Step): void {
  const { metadata, spec } = notification;
  const { type, clusterName } = spec;
  const { target, occurrences } = step;
  const origin = { namespace: metadata.namespace ?? "", ...(clusterName !== undefined && { clusterName }) };
  const payload = payloadFor(type, occurrences, origin);
  deliveries.start(keyOf(notification), { target, payload, occurrences, type });
}

function droppedCounter(metrics: Registry): (events: number) => void {
  const counter = metrics.counter({
    name: "notification_events_dropped_total",
    help: "Events that Notifications did not report, because they were not delivered within an hour, or were too many.",
  });
  return (events) => counter.increment({}, events);
}

const referenceUser = (key: Key): string => `notification/${key}`;
