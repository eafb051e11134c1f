/** What `kubectl apply --filename deploy/quickstart/install.yaml` puts into a cluster. */
import { customResourceDefinitions } from "@pko/api";

import { operatorNamespaceObject, operatorObjects } from "./operator-objects.ts";
import { stackPolicy } from "./stack-policy.ts";

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
