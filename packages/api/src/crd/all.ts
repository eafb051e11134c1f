/** Every kind of the API, in the order of its documents. */
import { programDefinition } from "../program/definition.ts";
import { stackDefinition } from "../stack/definition.ts";
import { updateDefinition } from "../update/definition.ts";
import { workspaceDefinition } from "../workspace/definition.ts";
import { crdOf, type CustomResourceDefinition, type KindDefinition } from "./definition.ts";

export const kindDefinitions: readonly KindDefinition[] = [
  stackDefinition,
  programDefinition,
  workspaceDefinition,
  updateDefinition,
];

export const customResourceDefinitions = (): CustomResourceDefinition[] => kindDefinitions.map(crdOf);
