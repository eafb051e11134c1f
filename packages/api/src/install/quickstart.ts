/** What `kubectl apply --filename deploy/quickstart/install.yaml` puts into a cluster. */
import { stackPolicy } from "../admission/stack-policy.ts";
import { customResourceDefinitions } from "../crd/all.ts";
import { operatorNamespaceObject, operatorObjects } from "./operator-objects.ts";

/** The service account that the documents' Stacks name. It needs no rights: the agent authenticates by certificate. */
const serviceAccount = {
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { namespace: "default", name: "pulumi" },
};

export const quickstartObjects = (): object[] => [
  operatorNamespaceObject,
  ...customResourceDefinitions(),
  ...stackPolicy,
  serviceAccount,
  ...operatorObjects,
];
