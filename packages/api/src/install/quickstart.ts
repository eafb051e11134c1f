/** What `kubectl apply --filename deploy/quickstart/install.yaml` puts into a cluster. */
import { stackPolicy } from "../admission/stack-policy.ts";
import { customResourceDefinitions } from "../crd/all.ts";
import { operatorNamespaceObject, operatorObjects } from "./operator-objects.ts";

/** The service account that the documents' Stacks name. */
const serviceAccount = {
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { namespace: "default", name: "pulumi" },
};

/** The documents grant it; our own workspaces authenticate by certificate and do without. */
const authDelegator = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRoleBinding",
  metadata: { name: "default:pulumi:system:auth-delegator" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:auth-delegator" },
  subjects: [{ kind: "ServiceAccount", namespace: "default", name: "pulumi" }],
};

export const quickstartObjects = (): object[] => [
  operatorNamespaceObject,
  ...customResourceDefinitions(),
  ...stackPolicy,
  serviceAccount,
  authDelegator,
  ...operatorObjects,
];
