/** For tests: Stacks and events with fixed times. */
import type { Condition, Stack, StackSpec, StackStatus } from "@pko/api/browser";
import type { NumberedEvent, ResourceEvent, RunEvent } from "@pko/records/browser";

export const now = Date.UTC(2030, 0, 1, 12);
export const at = (seconds: number): string => new Date(now + seconds * 1000).toISOString();

export const condition = (type: string, status: Condition["status"], reason: string): Condition => ({
  type,
  status,
  reason,
  message: `about ${reason}`,
  lastTransitionTime: at(-3600),
});

export const failing: StackStatus = {
  observedGeneration: 1,
  conditions: [condition("Ready", "False", "NotReadyStalled"), condition("Stalled", "True", "UpdateFailed")],
};
export const waiting: StackStatus = {
  observedGeneration: 1,
  conditions: [condition("Ready", "False", "NotReadyInProgress"), condition("Reconciling", "True", "AwaitingApproval")],
};
export const ready: StackStatus = {
  observedGeneration: 1,
  conditions: [condition("Ready", "True", "ProcessingCompleted")],
};

export function aStack(id: string, status?: StackStatus, spec: Partial<StackSpec> = {}): Stack {
  const [namespace = "", name = ""] = id.split("/");
  return {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { namespace, name, generation: 1 },
    spec: { stack: "dev", ...spec },
    ...(status && { status }),
  };
}

export const numbered = (seq: number, seconds: number, event: RunEvent): NumberedEvent => ({
  seq,
  time: at(seconds),
  event,
});

export const urnOf = (name: string, type = "aws:s3/bucket:Bucket"): string => `urn:pulumi:dev::shop::${type}::${name}`;

export const resourceEvent = (
  name: string,
  phase: ResourceEvent["phase"],
  more: Partial<ResourceEvent> = {},
): ResourceEvent => ({
  kind: "resource",
  phase,
  op: "create",
  urn: urnOf(name),
  resourceType: "aws:s3/bucket:Bucket",
  ...more,
});
