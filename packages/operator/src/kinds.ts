/** The Pulumi kinds as resources of the API server. */
import {
  approvalKind,
  notificationKind,
  programKind,
  receiverKind,
  stackKind,
  updateKind,
  updateRecordKind,
  workspaceClassKind,
  workspaceKind,
  type Approval,
  type Notification,
  type Program,
  type Receiver,
  type Stack,
  type Update,
  type UpdateRecord,
  type Workspace,
  type WorkspaceClass,
} from "@pko/api";
import { resource } from "@pko/kube";

export const stacks = resource<Stack>(stackKind);
export const programs = resource<Program>(programKind);
export const workspaces = resource<Workspace>(workspaceKind);
export const updates = resource<Update>(updateKind);
export const approvals = resource<Approval>(approvalKind);
export const updateRecords = resource<UpdateRecord>(updateRecordKind);
export const workspaceClasses = resource<WorkspaceClass>(workspaceClassKind);
export const receivers = resource<Receiver>(receiverKind);
export const notifications = resource<Notification>(notificationKind);
