/** Computes the status of a Receiver. Pure. */
import type { Condition, ReceiverStatus } from "@pko/api";
import { timestamp } from "@pko/kube";

import { conditionAt } from "../shared/objects/conditions.ts";
import { pathOf } from "../webhooks/paths.ts";
import type { Outcome } from "./outcome.ts";
import type { ReceiverPlan } from "./rules/index.ts";
import type { ReceiverView } from "./view.ts";

export function receiverStatus(view: ReceiverView, { outcome }: ReceiverPlan): ReceiverStatus {
  const { metadata, status = {} } = view.receiver;
  const { delivery, rejection } = view.deliveries;
  const lastDelivery = delivery ? withTime(delivery) : status.lastDelivery;
  const lastRejection = rejection ? withTime(rejection) : status.lastRejection;
  return {
    observedGeneration: metadata.generation ?? 0,
    path: pathOf(view.receiver),
    ...(lastDelivery && { lastDelivery }),
    ...(lastRejection && { lastRejection }),
    conditions: conditionsFor(view, outcome),
  };
}

function withTime<Details extends object>({ at, ...details }: Details & { readonly at: number }) {
  return { time: timestamp(at), ...details };
}

function conditionsFor({ receiver, now }: ReceiverView, outcome: Outcome): Condition[] {
  const { message } = outcome;
  switch (outcome.kind) {
    case "receiving":
      return [conditionAt(receiver, { type: "Ready", status: "True", reason: "Receiving", message }, now)];
    case "stalled":
      return [
        conditionAt(receiver, { type: "Ready", status: "False", reason: "NotReadyStalled", message }, now),
        conditionAt(receiver, { type: "Stalled", status: "True", reason: outcome.reason, message }, now),
      ];
  }
}
