/** Overlays for the objects that the operator generates for a Stack. */
import { Type, type Static } from "typebox";

import { optional } from "../schema/field.ts";
import { overlayOf } from "../schema/overlay.ts";
import { TemplateMetadata, templateIdentity, unusedStatus } from "../shared/template-metadata.ts";
import { UpdateTemplateSpec } from "../update/spec.ts";
import { UpdateStatus } from "../update/status.ts";
import { initContainers } from "../workspace/pod.ts";
import { WorkspaceSpec } from "../workspace/spec.ts";
import { WorkspaceStatus } from "../workspace/status.ts";

const WorkspaceTemplateSpec = Type.Object({ ...WorkspaceSpec.properties, initContainers: optional(initContainers) });

export const WorkspaceTemplate = Type.Object(
  {
    ...templateIdentity,
    metadata: optional(TemplateMetadata),
    spec: optional(
      overlayOf(WorkspaceTemplateSpec, { description: "Fields of the Workspace's spec to set or replace." }),
    ),
    status: optional(overlayOf(WorkspaceStatus, unusedStatus)),
  },
  { description: "A template to merge over the generated Workspace of the Stack." },
);
export type WorkspaceTemplate = Static<typeof WorkspaceTemplate>;

export const UpdateTemplate = Type.Object(
  {
    ...templateIdentity,
    metadata: optional(TemplateMetadata),
    spec: optional(overlayOf(UpdateTemplateSpec, { description: "Fields of each Update's spec to set or replace." })),
    status: optional(overlayOf(UpdateStatus, unusedStatus)),
  },
  { description: "A template to merge over the generated Updates of the Stack." },
);
export type UpdateTemplate = Static<typeof UpdateTemplate>;
