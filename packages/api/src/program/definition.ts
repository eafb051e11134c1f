/** Program: a Pulumi YAML program, written as an object. */
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
  description: "A Pulumi YAML program, for Stacks to refer to by programRef.",
  fields: { program: ProgramSpec, status: ProgramStatus },
  columns: [
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "The time since its creation." },
    { name: "URL", type: "string", jsonPath: ".status.artifact.url", description: "Where its archive is, if any." },
    {
      name: "Revision",
      type: "integer",
      jsonPath: ".metadata.generation",
      description: "The revision of the program.",
    },
  ],
  conditions: {},
};
