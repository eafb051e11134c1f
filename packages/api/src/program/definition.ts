/** Program: a Pulumi YAML program as a Kubernetes object. */
import { programConditions } from "../conditions.ts";
import type { KindDefinition } from "../crd/definition.ts";
import { programKind, pulumiGroup } from "../kinds.ts";
import { ProgramSpec } from "./spec.ts";
import { ProgramStatus } from "./status.ts";

export const programDefinition: KindDefinition = {
  kind: programKind.kind,
  plural: programKind.plural,
  group: pulumiGroup,
  versions: ["v1"],
  shortNames: ["prog"],
  description: "A Pulumi YAML program, which Stacks reference by programRef.",
  fields: { program: ProgramSpec, status: ProgramStatus },
  columns: [
    {
      name: "Age",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
      description: "The time since the object was created.",
    },
    {
      name: "URL",
      type: "string",
      jsonPath: ".status.artifact.url",
      description: "The URL of the program's archive, if any.",
    },
    {
      name: "Revision",
      type: "integer",
      jsonPath: ".metadata.generation",
      description: "The revision of the program.",
    },
  ],
  conditions: programConditions,
};
