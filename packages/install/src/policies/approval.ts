/**
 * Policies that make Approvals trustworthy. The operator cannot repeat these checks, because it does not see who sent a
 * request, so a request that cannot be evaluated is denied.
 */
import {
  approvalKind,
  autoGroup,
  defaultExpirySeconds,
  policyProbeAnnotation,
  stackDefinition,
  validationText,
} from "@pko/api";

import { stackRequests, type AdmissionPolicy, type Validation } from "./policy.ts";

const decidedBy = {
  message: "must be the name of the user who creates the Approval",
  remedy: "set it to your own user name, which `kubectl auth whoami` shows",
};

/**
 * The operator checks that this policy is in force: it sends a dry run with another name, and expects a message that
 * contains `decidedBy`.
 */
export const approvalPolicy: AdmissionPolicy = {
  name: `${approvalKind.plural}.${autoGroup}`,
  suffix: "-approvals",
  spec: {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [autoGroup],
          apiVersions: ["v1alpha1"],
          operations: ["CREATE"],
          resources: [approvalKind.plural],
          scope: "Namespaced",
        },
      ],
    },
    validations: [
      {
        expression: "object.spec.decidedBy == request.userInfo.username",
        message: `spec.decidedBy: ${validationText(decidedBy)}`,
        messageExpression: `"spec.decidedBy: ${decidedBy.message}; set it to " + request.userInfo.username`,
      },
    ],
  },
};

const { group } = stackDefinition;

/** A Stack without a spec, or without the field, has the default. */
const required = (object: string): string => `${object}.?spec.?approval.?required.orValue("Never")`;
const expiry = (object: string): string =>
  `${object}.?spec.?approval.?expiresAfterSeconds.orValue(${defaultExpirySeconds})`;
const protect = (object: string): string => `${object}.?spec.?protect.orValue(false)`;

function onlyApprovers(field: string, { unchanged, weakened }: { unchanged: string; weakened: string }): Validation {
  return {
    expression: `${unchanged} || variables.mayApprove`,
    message: `${field}: only a user who may create Approvals in this namespace may ${weakened}; keep the value, or ask such a user to change it`,
    reason: "Forbidden",
  };
}

/** First, so that the API server answers that the object is invalid: it is not a permission that is missing. */
const denyProbe: Validation = {
  expression: `!variables.isProbe || variables.after >= variables.before`,
  message: `spec.approval.required: must not be lowered while the annotation ${policyProbeAnnotation} is set; remove the annotation`,
};

/**
 * Metadata and status can be changed regardless of permissions, as the operator and other controllers do. The
 * permission is checked only if a field is weakened. The operator checks that this policy is in force, too.
 */
export const safeguardPolicy: AdmissionPolicy = {
  name: `stack-safeguards.${group}`,
  suffix: "-stack-safeguards",
  spec: {
    failurePolicy: "Fail",
    matchConstraints: stackRequests("UPDATE"),
    variables: [
      {
        name: "isProbe",
        expression: `object.metadata.?annotations[?"${policyProbeAnnotation}"].orValue("false") == "true"`,
      },
      { name: "strictness", expression: `{"Never": 0, "OnDestructiveChanges": 1, "Always": 2}` },
      { name: "before", expression: `variables.strictness[${required("oldObject")}]` },
      { name: "after", expression: `variables.strictness[${required("object")}]` },
      {
        name: "mayApprove",
        expression: `authorizer.group("${autoGroup}").resource("${approvalKind.plural}").namespace(object.metadata.namespace).check("create").allowed()`,
      },
    ],
    validations: [
      denyProbe,
      onlyApprovers("spec.approval.required", {
        unchanged: "variables.after >= variables.before",
        weakened: "lower or remove it",
      }),
      onlyApprovers("spec.approval.expiresAfterSeconds", {
        unchanged: `variables.before == 0 || ${expiry("object")} <= ${expiry("oldObject")}`,
        weakened: "raise it",
      }),
      onlyApprovers("spec.protect", {
        unchanged: `!${protect("oldObject")} || ${protect("object")}`,
        weakened: "set it to false or remove it",
      }),
    ],
  },
};
