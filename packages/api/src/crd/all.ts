/** All kinds of the API, in the order of the documentation. */
import { approvalDefinition } from "../approval/definition.ts";
import { notificationDefinition } from "../notification/definition.ts";
import { programDefinition } from "../program/definition.ts";
import { receiverDefinition } from "../receiver/definition.ts";
import { stackDefinition } from "../stack/definition.ts";
import { updateDefinition } from "../update/definition.ts";
import { updateRecordDefinition } from "../update-record/definition.ts";
import { workspaceClassDefinition } from "../workspace-class/definition.ts";
import { workspaceDefinition } from "../workspace/definition.ts";
import { buildCrd, type CustomResourceDefinition, type KindDefinition } from "./definition.ts";

export const kindDefinitions: readonly KindDefinition[] = [
  stackDefinition,
  programDefinition,
  workspaceDefinition,
  updateDefinition,
  approvalDefinition,
  updateRecordDefinition,
  workspaceClassDefinition,
  receiverDefinition,
  notificationDefinition,
];

export const customResourceDefinitions = (): CustomResourceDefinition[] => kindDefinitions.map(buildCrd);
