/** Annotations that the operator reads and writes. */

/** On a Stack: each new value requests one update. */
export const reconcileRequestAnnotation = "pulumi.com/reconciliation-request";

/** On a Stack: the name of the Update to cancel. The operator does not retry it automatically. */
export const cancellationRequestAnnotation = "pulumi.com/cancellation-request";

/** On a Stack: each new value requests one drift check. */
export const driftRequestAnnotation = "pulumi.com/drift-request";

/** On a Stack: a time in RFC 3339 until which its update windows are ignored. */
export const ignoreWindowsUntilAnnotation = "pulumi.com/ignore-update-windows-until";

/** On a Stack that the operator creates for a pull request: the number of the pull request. */
export const pullRequestAnnotation = "pulumi.com/pull-request";

/** On a Workspace: a time in RFC 3339 until which its pod is kept, so that a person can work in it. */
export const wakeUntilAnnotation = "pulumi.com/wake-until";

/** On a Stack: who opened a shell in its workspace, and when. */
export const shellAnnotation = "pulumi.com/last-shell";

/** On a Stack: the same, only while the shell is open. */
export const openShellAnnotation = "pulumi.com/open-shell";

/** On the operator's Lease: any value except "false" suspends all Stacks of the operator. */
export const suspendAnnotation = "pulumi.com/suspend";

export function isOperatorSuspended(leaseAnnotations: Readonly<Record<string, string>> = {}): boolean {
  const value = leaseAnnotations[suspendAnnotation];
  return value !== undefined && value !== "false";
}

/** On the operator's Lease: the log level of all replicas, instead of the configured one. */
export const logLevelAnnotation = "pulumi.com/log-level";

/** On the operator's Lease, written by the leader: "off" if it may not read WorkspaceClasses, otherwise "on". */
export const classesAnnotation = "pulumi.com/workspace-classes";

/** On the operator's Lease: where the other replicas forward webhooks to, and the certificate that they must find there. */
export const webhookLeaderAnnotation = "pulumi.com/webhook-leader";

/** On an Update: the trigger as JSON, so that a crash between its creation and the Stack's status write loses nothing. */
export const triggerAnnotation = "pulumi.com/trigger";
/** On an Update: why its Stack created it, for people. */
export const triggerReasonAnnotation = "pulumi.com/trigger-reason";

/** On an UpdateRecord: its size in bytes, so that the sum of all sizes is known without reading the records. */
export const recordSizeAnnotation = "pulumi.com/record-size";

/** On the Secret with an Update's outputs: the keys that Pulumi treats as secrets, as a JSON list. */
export const secretOutputsAnnotation = "pulumi.com/secrets";

/** On the CRDs: the version of the operator that wrote them, and a hash of the spec that it wrote. */
export const crdVersionAnnotation = "pulumi.com/operator-version";
export const crdHashAnnotation = "pulumi.com/definition-hash";

/** On the CA's Secret: any value requests a rotation. The operator removes the annotation after it has added the new CA. */
export const caRotationRequestAnnotation = "pulumi.com/ca-rotation-request";

/**
 * On a Stack, only in dry runs of the operator: the admission policy denies it to lower `approval.required`, also to a user who may
 * approve. So the operator, which may, sees whether the policy is in force.
 */
export const policyProbeAnnotation = "pulumi.com/policy-probe";
