/** Policies that deny the deletion of what is protected. */
import { protectLabel, stackDefinition } from "@pko/api";

import { stackRequests, type AdmissionPolicy } from "./policy.ts";

const { group } = stackDefinition;

/**
 * The namespace controller and the garbage collector delete what others have decided to delete, and retry for as long as
 * they are denied; the operator then keeps the Stack. A controller manager without credentials for each controller has
 * its own name.
 */
const exempt = [
  "system:serviceaccount:kube-system:namespace-controller",
  "system:serviceaccount:kube-system:generic-garbage-collector",
  "system:kube-controller-manager",
];

export const stackProtectionPolicy: AdmissionPolicy = {
  name: `stack-protection.${group}`,
  suffix: "-stack-protection",
  spec: {
    failurePolicy: "Fail",
    matchConstraints: stackRequests("DELETE"),
    matchConditions: [
      { name: "not-a-controller", expression: `!(request.userInfo.username in ${JSON.stringify(exempt)})` },
    ],
    validations: [
      {
        expression: "!oldObject.?spec.?protect.orValue(false)",
        message: "spec.protect: the Stack is protected from deletion; set spec.protect to false first",
        reason: "Forbidden",
      },
    ],
  },
};

/** Installed only on request: it concerns namespaces, which belong to others. */
export const namespaceProtectionPolicy: AdmissionPolicy = {
  name: `namespace-protection.${group}`,
  suffix: "-namespace-protection",
  spec: {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [""],
          apiVersions: ["v1"],
          operations: ["DELETE"],
          resources: ["namespaces"],
          scope: "Cluster",
        },
      ],
    },
    validations: [
      {
        expression: `oldObject.metadata.?labels[?"${protectLabel}"].orValue("false") == "false"`,
        message: `metadata.labels: the namespace is protected from deletion by the label ${protectLabel}, because its Stacks cannot destroy anything while it is deleted; delete its Stacks, remove the label, then delete the namespace`,
        reason: "Forbidden",
      },
    ],
  },
};
