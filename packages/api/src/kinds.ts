/** The kinds, as the API server serves them, and the types of their objects. */
import type { ObjectMeta } from "kubernetes-types/meta/v1";

import type { ApprovalSpec, ApprovalStatus } from "./approval/spec.ts";
import type { NotificationSpec, NotificationStatus } from "./notification/spec.ts";
import type { ProgramSpec } from "./program/spec.ts";
import type { ProgramStatus } from "./program/status.ts";
import type { ReceiverSpec, ReceiverStatus } from "./receiver/spec.ts";
import type { StackSpec } from "./stack/spec.ts";
import type { StackStatus } from "./stack/status.ts";
import type { UpdateRecordContent } from "./update-record/record.ts";
import type { UpdateSpec } from "./update/spec.ts";
import type { UpdateStatus } from "./update/status.ts";
import type { WorkspaceClassSpec } from "./workspace-class/spec.ts";
import type { WorkspaceSpec } from "./workspace/spec.ts";
import type { WorkspaceStatus } from "./workspace/status.ts";

export const pulumiGroup = "pulumi.com";
export const autoGroup = "auto.pulumi.com";

export const stackKind = {
  apiVersion: `${pulumiGroup}/v1`,
  kind: "Stack",
  plural: "stacks",
  namespaced: true,
} as const;

export const programKind = {
  apiVersion: `${pulumiGroup}/v1`,
  kind: "Program",
  plural: "programs",
  namespaced: true,
} as const;

export const workspaceKind = {
  apiVersion: `${autoGroup}/v1alpha1`,
  kind: "Workspace",
  plural: "workspaces",
  namespaced: true,
} as const;

export const updateKind = {
  apiVersion: `${autoGroup}/v1alpha1`,
  kind: "Update",
  plural: "updates",
  namespaced: true,
} as const;

export const approvalKind = {
  apiVersion: `${autoGroup}/v1alpha1`,
  kind: "Approval",
  plural: "approvals",
  namespaced: true,
} as const;

export const updateRecordKind = {
  apiVersion: `${autoGroup}/v1alpha1`,
  kind: "UpdateRecord",
  plural: "updaterecords",
  namespaced: true,
} as const;

export const workspaceClassKind = {
  apiVersion: `${autoGroup}/v1alpha1`,
  kind: "WorkspaceClass",
  plural: "workspaceclasses",
  namespaced: false,
} as const;

export const receiverKind = {
  apiVersion: `${autoGroup}/v1alpha1`,
  kind: "Receiver",
  plural: "receivers",
  namespaced: true,
} as const;

export const notificationKind = {
  apiVersion: `${autoGroup}/v1alpha1`,
  kind: "Notification",
  plural: "notifications",
  namespaced: true,
} as const;

interface KindObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

export interface Stack extends KindObject {
  readonly spec: StackSpec;
  readonly status?: StackStatus;
}

export interface Program extends KindObject {
  readonly program?: ProgramSpec;
  readonly status?: ProgramStatus;
}

export interface Workspace extends KindObject {
  readonly spec?: WorkspaceSpec;
  readonly status?: WorkspaceStatus;
}

export interface Update extends KindObject {
  readonly spec?: UpdateSpec;
  readonly status?: UpdateStatus;
}

export interface Approval extends KindObject {
  readonly spec: ApprovalSpec;
  readonly status?: ApprovalStatus;
}

export interface UpdateRecord extends KindObject {
  readonly record: UpdateRecordContent;
}

export interface WorkspaceClass extends KindObject {
  readonly spec?: WorkspaceClassSpec;
}

export interface Receiver extends KindObject {
  readonly spec: ReceiverSpec;
  readonly status?: ReceiverStatus;
}

export interface Notification extends KindObject {
  readonly spec: NotificationSpec;
  readonly status?: NotificationStatus;
}
