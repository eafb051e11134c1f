/** Notification: reports what happens to the Stacks of a namespace to a chat or to a CloudEvents sink. */
import { notificationConditions } from "../conditions.ts";
import type { KindDefinition } from "../crd/definition.ts";
import { autoGroup, notificationKind } from "../kinds.ts";
import { NotificationSpec, NotificationStatus } from "./spec.ts";

export const notificationDefinition: KindDefinition = {
  kind: notificationKind.kind,
  plural: notificationKind.plural,
  group: autoGroup,
  versions: ["v1alpha1"],
  shortNames: ["ntfy"],
  description:
    "Reports what happens to the Stacks of its namespace: as CloudEvents, or as messages to Slack or Microsoft Teams.",
  fields: { spec: NotificationSpec, status: NotificationStatus },
  rules: [{ rule: "has(self.spec)", message: "spec: is required; set spec.type and spec.secretRef.name" }],
  columns: [
    { name: "Type", type: "string", jsonPath: ".spec.type", description: "The format of the messages." },
    {
      name: "Ready",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: "Whether messages are delivered.",
    },
    {
      name: "Last Delivery",
      type: "date",
      jsonPath: ".status.lastDelivery.time",
      description: "The time since the last delivered message.",
    },
    {
      name: "Delivered",
      type: "integer",
      jsonPath: ".status.delivered",
      description: "The number of delivered events.",
    },
    {
      name: "Dropped",
      type: "integer",
      jsonPath: ".status.dropped",
      wide: true,
      description: "The number of events that could not be delivered.",
    },
    {
      name: "Status",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Ready")].message',
      wide: true,
      description: "Why messages are delivered or not.",
    },
    {
      name: "Age",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
      description: "The time since the object was created.",
    },
  ],
  conditions: notificationConditions,
};
