/**
 * The operator's RBAC rules. They allow exactly the requests that the operator sends: test/e2e/install/rbac.test.ts compares
 * them with recorded requests, and test/integration/install/rights.test.ts checks that all other requests are denied.
 * The operator gets Secrets by the names in specs: it cannot list or watch them.
 */
import {
  approvalKind,
  autoGroup,
  caSecretName,
  formerCaSecretName,
  kindDefinitions,
  leaseName,
  pulumiGroup,
  updateRecordKind,
  workspaceClassKind,
} from "@pko/api";

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

/** In each watched namespace: one rule for each resource, sorted by group and name. */
export const servedRules: readonly Rule[] = [
  { apiGroups: [""], resources: ["configmaps"], verbs: ["get"] },
  { apiGroups: [""], resources: ["events"], verbs: apply },
  // The claims with the caches of WorkspaceClasses.
  { apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: ["get", ...apply] },
  // Pods are created only in dry runs, to check whether admission accepts a template.
  { apiGroups: [""], resources: ["pods"], verbs: ["get", ...watch, "create", "delete"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", ...apply, "delete"] },
  { apiGroups: [""], resources: ["services"], verbs: ["get", ...apply] },
  { apiGroups: ["apps"], resources: ["statefulsets"], verbs: ["get", ...watch, ...apply, "delete"] },
  // Kubernetes cannot limit a permission to dry runs: the operator creates Approvals only in dry runs, to check that the
  // admission policy for them is in force.
  { apiGroups: [autoGroup], resources: ["approvals"], verbs: [...watch, "create"] },
  { apiGroups: [autoGroup], resources: ["approvals/status"], verbs: ["patch"] },
  { apiGroups: [autoGroup], resources: ["notifications"], verbs: watch },
  { apiGroups: [autoGroup], resources: ["notifications/status"], verbs: ["patch"] },
  { apiGroups: [autoGroup], resources: ["receivers"], verbs: watch },
  { apiGroups: [autoGroup], resources: ["receivers/status"], verbs: ["patch"] },
  // A record is written once. The operator watches only the metadata of records.
  { apiGroups: [autoGroup], resources: ["updaterecords"], verbs: ["get", ...watch, "create", "delete"] },
  { apiGroups: [autoGroup], resources: ["updates"], verbs: ["get", ...watch, ...apply, "delete"] },
  // The admission plugin OwnerReferencesPermissionEnforcement, which OpenShift enables, requires this permission to set
  // owner references with blockOwnerDeletion.
  { apiGroups: [autoGroup], resources: ["updates/finalizers"], verbs: ["update"] },
  { apiGroups: [autoGroup], resources: ["updates/status"], verbs: ["patch"] },
  { apiGroups: [autoGroup], resources: ["workspaces"], verbs: ["get", ...watch, ...apply, "delete"] },
  { apiGroups: [autoGroup], resources: ["workspaces/finalizers"], verbs: ["update"] },
  { apiGroups: [autoGroup], resources: ["workspaces/status"], verbs: ["patch"] },
  { apiGroups: [pulumiGroup], resources: ["programs"], verbs: watch },
  { apiGroups: [pulumiGroup], resources: ["programs/status"], verbs: ["patch"] },
  { apiGroups: [pulumiGroup], resources: ["stacks"], verbs: ["get", ...watch, ...apply, "delete"] },
  { apiGroups: [pulumiGroup], resources: ["stacks/status"], verbs: ["patch"] },
  {
    apiGroups: ["source.toolkit.fluxcd.io"],
    resources: ["buckets", "externalartifacts", "gitrepositories", "helmcharts", "ocirepositories"],
    verbs: watch,
  },
];

/** In the operator's own namespace: the Lease for leader election, and the CA that signs the agents' certificates. */
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

/** The operator's CRDs, which a new version creates with server-side apply, or upgrades. */
export const crdRules: readonly Rule[] = [
  {
    apiGroups: ["apiextensions.k8s.io"],
    resources: ["customresourcedefinitions"],
    resourceNames: kindDefinitions.map(({ plural, group }) => `${plural}.${group}`),
    verbs: ["get", "create", "patch"],
  },
];

/** WorkspaceClasses and the labels of namespaces. Without these permissions, the operator works without classes. */
export const classRules: readonly Rule[] = [
  { apiGroups: [""], resources: ["namespaces"], verbs: watch },
  { apiGroups: [autoGroup], resources: [workspaceClassKind.plural], verbs: watch },
];

/** To authenticate and authorize clients that request metrics. */
export const metricsAuthRules: readonly Rule[] = [
  { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
  { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
];

/** For clients that scrape metrics. */
export const metricsReaderRules: readonly PathRule[] = [{ nonResourceURLs: ["/metrics"], verbs: ["get"] }];

/** For users: aggregated to the cluster roles `view`, `edit` and `admin`. */
export const viewRules: readonly Rule[] = [
  {
    apiGroups: [pulumiGroup, autoGroup],
    resources: kindDefinitions.map(({ plural }) => plural),
    verbs: ["get", ...watch],
  },
];
/** Users who may edit Stacks may neither approve their changes, nor write the records of their runs, nor change their limits. */
const ofOthers: ReadonlySet<string> = new Set([
  approvalKind.plural,
  updateRecordKind.plural,
  workspaceClassKind.plural,
]);
export const editRules: readonly Rule[] = [
  {
    apiGroups: [pulumiGroup, autoGroup],
    resources: kindDefinitions.map(({ plural }) => plural).filter((plural) => !ofOthers.has(plural)),
    verbs: ["create", "delete", "deletecollection", "patch", "update"],
  },
];
/**
 * For users who approve changes; aggregated to no other role. They cannot delete Approvals, which show who decided, and
 * of which a rejection prevails over an approval.
 */
export const approverRules: readonly Rule[] = [
  { apiGroups: [autoGroup], resources: [approvalKind.plural], verbs: ["get", ...watch, "create"] },
  { apiGroups: [autoGroup], resources: ["updates", updateRecordKind.plural], verbs: ["get", ...watch] },
  { apiGroups: [pulumiGroup], resources: ["stacks"], verbs: ["get", ...watch] },
];
