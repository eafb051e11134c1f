/** Overlays for the objects that a Stack generates. */
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
  { description: "Changes to the Workspace of the Stack, merged over the generated object." },
);
export type WorkspaceTemplate = Static<typeof WorkspaceTemplate>;

export const UpdateTemplate = Type.Object(
  {
    ...templateIdentity,
    metadata: optional(TemplateMetadata),
    spec: optional(overlayOf(UpdateTemplateSpec, { description: "Fields of each Update's spec to set or replace." })),
    status: optional(overlayOf(UpdateStatus, unusedStatus)),
  },
  { description: "Changes to the Updates of the Stack, merged over the generated objects." },
);
export type UpdateTemplate = Static<typeof UpdateTemplate>;
