/** A ValidatingAdmissionPolicy with its binding. The chart and the manifests give it different names. */
import { stackDefinition } from "@pko/api";

export interface Validation {
  readonly expression: string;
  readonly message?: string;
  /** Takes precedence over the message. */
  readonly messageExpression?: string;
  /** Why the API server denies the request: by default, because the object is invalid. */
  readonly reason?: "Forbidden";
}

export interface ResourceRule {
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly operations: readonly string[];
  readonly resources: readonly string[];
  readonly scope: "Namespaced" | "Cluster";
}

export interface Expression {
  readonly name: string;
  readonly expression: string;
}

export interface AdmissionPolicy {
  readonly name: string;
  /** In the chart, added to the name of the release. */
  readonly suffix: string;
  readonly spec: {
    /** What happens to a request that the policy cannot evaluate: Ignore admits it, Fail denies it. */
    readonly failurePolicy: "Ignore" | "Fail";
    readonly matchConstraints: { readonly resourceRules: readonly ResourceRule[] };
    readonly matchConditions?: readonly Expression[];
    readonly variables?: readonly Expression[];
    readonly validations: readonly Validation[];
  };
}

const { group, plural, versions } = stackDefinition;

/** Requests about Stacks, in every version. */
export const stackRequests = (
  ...operations: readonly string[]
): { readonly resourceRules: readonly ResourceRule[] } => ({
  resourceRules: [{ apiGroups: [group], apiVersions: versions, operations, resources: [plural], scope: "Namespaced" }],
});

const apiVersion = "admissionregistration.k8s.io/v1";

export const policyObjects = ({ name, spec }: AdmissionPolicy): object[] => [
  { apiVersion, kind: "ValidatingAdmissionPolicy", metadata: { name }, spec },
  {
    apiVersion,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name, validationActions: ["Deny"] },
  },
];
