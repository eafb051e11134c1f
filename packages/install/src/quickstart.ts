/** The objects in deploy/quickstart/install.yaml. */
import { customResourceDefinitions } from "@pko/api";

import { operatorNamespaceObject, operatorObjects } from "./operator-objects.ts";
import { admissionPolicies, policyObjects } from "./policies/index.ts";

/** The service account in the documentation's Stacks. It needs no permissions: the agent authenticates by certificate. */
const serviceAccount = {
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { namespace: "default", name: "pulumi" },
};

export const quickstartObjects = (): object[] => [
  operatorNamespaceObject,
  ...customResourceDefinitions(),
  ...admissionPolicies.flatMap(policyObjects),
  serviceAccount,
  ...operatorObjects,
];
