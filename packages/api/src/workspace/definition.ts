/** Workspace: a pod in which an agent runs the Pulumi CLI. */
import { workspaceConditions } from "../conditions.ts";
import type { KindDefinition } from "../crd/definition.ts";
import { autoGroup, workspaceKind } from "../kinds.ts";
import { WorkspaceSpec } from "./spec.ts";
import { WorkspaceStatus } from "./status.ts";

const ready = (field: string): string => `.status.conditions[?(@.type=="Ready")].${field}`;

export const workspaceDefinition: KindDefinition = {
  kind: workspaceKind.kind,
  plural: workspaceKind.plural,
  group: autoGroup,
  versions: ["v1alpha1"],
  shortNames: ["wks"],
  description: "A pod with a Pulumi program, in which Updates run.",
  fields: { spec: WorkspaceSpec, status: WorkspaceStatus },
  columns: [
    { name: "Image", type: "string", jsonPath: ".spec.image", description: "The image with the Pulumi CLI." },
    {
      name: "Ready",
      type: "string",
      jsonPath: ready("status"),
      description: "Whether Updates can run in the workspace.",
    },
    { name: "Address", type: "string", jsonPath: ".status.address", description: "The address of the agent." },
    { name: "Reason", type: "string", jsonPath: ready("reason"), description: "Why the workspace is ready or not." },
    {
      name: "Pulumi",
      type: "string",
      jsonPath: ".status.pulumiVersion",
      wide: true,
      description: "The version of the Pulumi CLI.",
    },
    {
      name: "Age",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
      description: "The time since the object was created.",
    },
  ],
  conditions: workspaceConditions,
};
