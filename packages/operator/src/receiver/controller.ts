/** The Receiver controller: it gives the webhook endpoint the secrets of Receivers, and reports what has arrived. */
import { fieldManagers, type Receiver } from "@pko/api";
import {
  controller,
  metricsRegistry,
  reconciler,
  silentLogger,
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
import { receivers } from "../kinds.ts";
import type { ActiveReceivers } from "../webhooks/active-receivers.ts";
import { observeReceiver } from "./observe.ts";
import type { Outcome } from "./outcome.ts";
import { planReceiver } from "./rules/index.ts";
import { receiverStatus } from "./status.ts";
import type { ReceiverView } from "./view.ts";

export interface ReceiverControllerOptions {
  /** Must be fenced. */
  readonly client: Client;
  readonly events: EventRecorder;
  /** With `receiverIndexers`. */
  readonly reflector: Reflector<Receiver>;
  readonly active: ActiveReceivers;
  /** Whether the operator serves webhooks. */
  readonly isServed: boolean;
  /** Stopped by the caller. */
  readonly references: ReferencePoller;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export function receiverController(options: ReceiverControllerOptions): Controller {
  const { client, events, reflector, active, isServed, references, clock } = options;
  const { log = silentLogger, metrics = metricsRegistry() } = options;
  const world = { client, receivers: reflector.store, active, isServed };
  const self: Controller = controller({
    name: "receiver-controller",
    reflector,
    concurrency: 2,
    log,
    metrics,
    ...(clock && { clock }),
    reconcile: reconciler<Receiver, ReceiverView, never, Outcome, never>({
      resource: receivers,
      client,
      events,
      fieldManager: fieldManagers.receiverStatus,
      observe: (key, moment) => observeReceiver(world, key, moment),
      objectIn: ({ receiver }) => receiver,
      plan: planReceiver,
      perform: () => Promise.resolve({ kind: "done" }),
      status: receiverStatus,
      publish(key, { view, plan }) {
        const { outcome } = plan;
        if (outcome.kind === "receiving") active.activate(key, outcome.secret);
        else active.deactivate(key);
        const wake = (): void => self.enqueue(key);
        references.follow(referenceUser(key), { objects: [view.secretObject], wake });
      },
      cleanUp(key) {
        active.forget(key);
        references.forget(referenceUser(key));
      },
    }),
    whileRunning() {
      active.wake = (key) => self.enqueue(key);
      return () => active.clear();
    },
  });
  return self;
}

const referenceUser = (key: Key): string => `receiver/${key}`;
