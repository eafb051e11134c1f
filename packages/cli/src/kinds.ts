/** The resources that commands read and write. */
import {
  approvalKind,
  programKind,
  stackKind,
  updateKind,
  updateRecordKind,
  workspaceKind,
  type Approval,
  type Program,
  type Stack,
  type Update,
  type UpdateRecord,
  type Workspace,
} from "@pko/api";
import { resource, type ApiObject, type KubeObject } from "@pko/kube";
import type { Event } from "kubernetes-types/core/v1";

export const stacks = resource<Stack>(stackKind);
export const programs = resource<Program>(programKind);
export const workspaces = resource<Workspace>(workspaceKind);
export const updates = resource<Update>(updateKind);
export const updateRecords = resource<UpdateRecord>(updateRecordKind);
export const approvals = resource<Approval>(approvalKind);

/** Of the core group: its fields are those that the operator writes and kubectl shows. */
export const events = resource<ApiObject<Event>>({
  apiVersion: "v1",
  kind: "Event",
  plural: "events",
  namespaced: true,
});

interface SelfReview extends KubeObject {
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}

/** Who the API server thinks the user is. */
export const selfReviews = resource<SelfReview>({
  apiVersion: "authentication.k8s.io/v1",
  kind: "SelfSubjectReview",
  plural: "selfsubjectreviews",
  namespaced: false,
});

export interface Crd extends KubeObject {
  readonly spec: { readonly versions?: readonly { readonly name: string; readonly served?: boolean }[] };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

export const crds = resource<Crd>({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});

export const admissionPolicies = resource<KubeObject>({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingAdmissionPolicy",
  plural: "validatingadmissionpolicies",
  namespaced: false,
});

export const admissionPolicyBindings = resource<KubeObject>({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingAdmissionPolicyBinding",
  plural: "validatingadmissionpolicybindings",
  namespaced: false,
});
