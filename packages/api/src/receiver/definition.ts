/** Receiver: accepts webhooks of one sender, which trigger polls of Git repositories. */
import { receiverConditions } from "../conditions.ts";
import type { KindDefinition } from "../crd/definition.ts";
import { autoGroup, receiverKind } from "../kinds.ts";
import { ReceiverSpec, ReceiverStatus } from "./spec.ts";

export const receiverDefinition: KindDefinition = {
  kind: receiverKind.kind,
  plural: receiverKind.plural,
  group: autoGroup,
  versions: ["v1alpha1"],
  shortNames: ["recv"],
  description:
    "Accepts webhooks of a Git server. Each makes the operator poll the repositories that Stacks of the namespace follow.",
  fields: { spec: ReceiverSpec, status: ReceiverStatus },
  rules: [{ rule: "has(self.spec)", message: "spec: is required; set spec.type and spec.secretRef.name" }],
  columns: [
    { name: "Type", type: "string", jsonPath: ".spec.type", description: "Who sends the webhooks." },
    {
      name: "Ready",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: "Whether webhooks are accepted.",
    },
    {
      name: "Last Delivery",
      type: "date",
      jsonPath: ".status.lastDelivery.time",
      description: "The time since the last verified webhook.",
    },
    { name: "Path", type: "string", jsonPath: ".status.path", description: "The path of the URL for the sender." },
    {
      name: "Status",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Ready")].message',
      wide: true,
      description: "Why webhooks are accepted or not.",
    },
    {
      name: "Age",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
      description: "The time since the object was created.",
    },
  ],
  conditions: receiverConditions,
};
