/** The admission policies that the chart and the quickstart manifest install. */
import { approvalPolicy, safeguardPolicy } from "./approval.ts";
import type { AdmissionPolicy } from "./policy.ts";
import { stackProtectionPolicy } from "./protection.ts";
import { stackValidationPolicy } from "./stack-validation.ts";

export { policyObjects } from "./policy.ts";
export { namespaceProtectionPolicy } from "./protection.ts";

export const admissionPolicies: readonly AdmissionPolicy[] = [
  stackValidationPolicy, // Stacks are valid where the schema cannot check it
  approvalPolicy, // an Approval names the user who creates it
  safeguardPolicy, // only users who may approve weaken approval and protection
  stackProtectionPolicy, // protected Stacks are not deleted
];
