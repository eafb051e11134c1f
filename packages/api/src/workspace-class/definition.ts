/** WorkspaceClass: defaults, limits, policies and caches for the workspaces of selected namespaces. */
import type { KindDefinition } from "../crd/definition.ts";
import { autoGroup, workspaceClassKind } from "../kinds.ts";
import { WorkspaceClassSpec } from "./spec.ts";

export const workspaceClassDefinition: KindDefinition = {
  kind: workspaceClassKind.kind,
  plural: workspaceClassKind.plural,
  group: autoGroup,
  scope: "Cluster",
  versions: ["v1alpha1"],
  shortNames: ["wksclass"],
  description:
    "Defaults, limits, policies and caches for the workspaces of the namespaces that it selects. At most one class may select a namespace.",
  fields: { spec: WorkspaceClassSpec },
  rules: [
    {
      rule: "has(self.spec)",
      message: "spec: is required; set spec.namespaceSelector to the namespaces that the class is for",
    },
  ],
  columns: [
    {
      name: "Image",
      type: "string",
      jsonPath: ".spec.template.spec.image",
      description: "The default image of workspaces.",
    },
    {
      name: "Cache",
      type: "string",
      jsonPath: ".spec.caches.size",
      description: "The size of the cache in each namespace.",
    },
    {
      name: "Age",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
      description: "The time since the object was created.",
    },
  ],
  conditions: {},
};
