/** Why a Stack is not up to date. Closed: docs/cli.md lists the codes. */

export const causeCodes = [
  "upToDate",
  "kindsMissing",
  "stackMissing",
  "namespaceTerminating",
  "operatorAbsent",
  "operatorDown",
  "operatorSuspended",
  "notObserved",
  "suspended",
  "protected",
  "nodeLost",
  "ownershipConflict",
  "classConflict",
  "classLimitExceeded",
  "approvalPolicyMissing",
  "approvalRejected",
  "awaitingApproval",
  "outsideUpdateWindow",
  "waitingForSlot",
  "waitingForDependents",
  "dependencyCycle",
  "inputMissing",
  "specInvalid",
  "sourceUnavailable",
  "prerequisite",
  "outputMissing",
  "locked",
  "versionTooLow",
  "quotaExceeded",
  "serviceAccountMissing",
  "podRejected",
  "podUnschedulable",
  "imageNotPulled",
  "podCrashing",
  "podNotStarting",
  "agentUnreachable",
  "installationFailed",
  "workspaceFailed",
  "outputsLost",
  "updateRunning",
  "workspacePreparing",
  "credentialsRejected",
  "pendingOperations",
  "pluginMissing",
  "policyViolation",
  "stackNotFound",
  "planNotApplied",
  "unexpectedChanges",
  "timedOut",
  "cancelled",
  "interrupted",
  "programError",
  "updateFailed",
  "drifted",
  "unknown",
] as const;
export type CauseCode = (typeof causeCodes)[number];

export interface Cause {
  readonly code: CauseCode;
  /** What is wrong, in one sentence. */
  readonly summary: string;
  /** What the operator, Kubernetes or Pulumi reports, in full. */
  readonly message?: string;
  /** What to do next: sentences, with commands at their end. */
  readonly next: readonly string[];
}

/** What a rule decides. */
export type Finding =
  | { readonly kind: "cause"; readonly cause: Cause }
  /** The cause is that of one of these Stacks; `cause` counts if they are all in order. */
  | { readonly kind: "dependsOn"; readonly stacks: readonly string[]; readonly cause: Cause };

export const because = (cause: Cause): Finding => ({ kind: "cause", cause });
