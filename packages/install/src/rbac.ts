/**
 * What the operator may do. Its code makes every request that a rule allows, and no other: test/e2e/install/rbac.test.ts
 * records a run and compares; test/integration/install/rights.test.ts makes every other call and expects it to be denied.
 * The operator reads Secrets by names from specs: it cannot list or watch them.
 */
import { autoGroup, caSecretName, formerCaSecretName, kindDefinitions, leaseName, pulumiGroup } from "@pko/api";

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

export interface PathRule {
  readonly nonResourceURLs: readonly string[];
  readonly verbs: readonly string[];
}

const watch = ["list", "watch"] as const;
const apply = ["create", "patch"] as const;

/** In each namespace that it serves: an entry for each resource, sorted by group and name. */
export const servedRules: readonly Rule[] = [
  { apiGroups: [""], resources: ["configmaps"], verbs: ["get"] },
  { apiGroups: [""], resources: ["events"], verbs: apply },
  // Pods are created in dry runs only, which show whether admission accepts a template.
  { apiGroups: [""], resources: ["pods"], verbs: ["get", ...watch, "create", "delete"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", ...apply, "delete"] },
  { apiGroups: [""], resources: ["services"], verbs: ["get", ...apply] },
  { apiGroups: ["apps"], resources: ["statefulsets"], verbs: ["get", ...watch, ...apply, "delete"] },
  { apiGroups: [autoGroup], resources: ["updates"], verbs: ["get", ...watch, ...apply, "delete"] },
  // The admission plugin OwnerReferencesPermissionEnforcement requires the right on finalizers of whoever creates an
  // object that blocks the deletion of its owner. OpenShift enables it.
  { apiGroups: [autoGroup], resources: ["updates/finalizers"], verbs: ["update"] },
  { apiGroups: [autoGroup], resources: ["updates/status"], verbs: ["patch"] },
  { apiGroups: [autoGroup], resources: ["workspaces"], verbs: ["get", ...watch, ...apply, "delete"] },
  { apiGroups: [autoGroup], resources: ["workspaces/finalizers"], verbs: ["update"] },
  { apiGroups: [autoGroup], resources: ["workspaces/status"], verbs: ["patch"] },
  { apiGroups: [pulumiGroup], resources: ["programs"], verbs: watch },
  { apiGroups: [pulumiGroup], resources: ["programs/status"], verbs: ["patch"] },
  { apiGroups: [pulumiGroup], resources: ["stacks"], verbs: ["get", ...watch, "patch"] },
  { apiGroups: [pulumiGroup], resources: ["stacks/status"], verbs: ["patch"] },
  {
    apiGroups: ["source.toolkit.fluxcd.io"],
    resources: ["buckets", "externalartifacts", "gitrepositories", "helmcharts", "ocirepositories"],
    verbs: watch,
  },
];

/** In its own namespace: who leads, and the CA that signs the agents' certificates. */
export const ownRules: readonly Rule[] = [
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    resourceNames: [leaseName],
    verbs: ["get", ...watch, "patch"],
  },
  { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
  { apiGroups: [""], resources: ["secrets"], resourceNames: [caSecretName], verbs: ["get", "patch"] },
  { apiGroups: [""], resources: ["secrets"], resourceNames: [formerCaSecretName], verbs: ["get"] },
];

/** The definitions of its kinds, which a new version brings up to date. */
export const crdRules: readonly Rule[] = [
  {
    apiGroups: ["apiextensions.k8s.io"],
    resources: ["customresourcedefinitions"],
    resourceNames: kindDefinitions.map(({ plural, group }) => `${plural}.${group}`),
    verbs: ["get", "patch"],
  },
];

/** Whose token it is that asks for metrics, and whether its user may. */
export const metricsAuthRules: readonly Rule[] = [
  { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
  { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
];

/** For whoever scrapes. */
export const metricsReaderRules: readonly PathRule[] = [{ nonResourceURLs: ["/metrics"], verbs: ["get"] }];

/** For people: what the cluster's own roles `view` and `edit` come to allow. */
export const viewRules: readonly Rule[] = [
  {
    apiGroups: [pulumiGroup, autoGroup],
    resources: kindDefinitions.map(({ plural }) => plural),
    verbs: ["get", ...watch],
  },
];
export const editRules: readonly Rule[] = [
  {
    apiGroups: [pulumiGroup, autoGroup],
    resources: kindDefinitions.map(({ plural }) => plural),
    verbs: ["create", "delete", "deletecollection", "patch", "update"],
  },
];
