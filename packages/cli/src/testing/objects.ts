/** For tests: Stacks and Updates with fixed times. */
import { type Condition, type Stack, type StackSpec, type StackStatus, type Update } from "@pko/api";
import { timestamp } from "@pko/kube";

import { stacks, updates } from "../kinds.ts";

export const now = Date.UTC(2030, 0, 1, 12);
export const ago = (seconds: number): string => timestamp(now - seconds * 1000);
export const ahead = (seconds: number): string => timestamp(now + seconds * 1000);

export const condition = (
  type: string,
  status: Condition["status"],
  [reason, message]: [string, string],
): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: ago(3600),
  observedGeneration: 1,
});

export const ready = (message: string): Condition[] => [condition("Ready", "True", ["ProcessingCompleted", message])];

export const notReady = (type: "Stalled" | "Reconciling", reason: string, message: string): Condition[] => [
  condition("Ready", "False", [type === "Stalled" ? "NotReadyStalled" : "NotReadyInProgress", message]),
  condition(type, "True", [reason, message]),
];

export function aStack(name: string, status?: StackStatus, spec: Partial<StackSpec> = {}): Stack {
  const { apiVersion, kind } = stacks;
  const source = spec.projectRepo || spec.fluxSource ? {} : { programRef: { name: "program" } };
  return {
    apiVersion,
    kind,
    metadata: { name, namespace: "shop", generation: 1, creationTimestamp: ago(86_400) },
    spec: { stack: "acme/web/dev", ...source, ...spec },
    ...(status && { status: { observedGeneration: 1, ...status } }),
  };
}

export function anUpdate(name: string, { spec, status }: Pick<Update, "spec" | "status">): Update {
  const { apiVersion, kind } = updates;
  return {
    apiVersion,
    kind,
    metadata: { name, namespace: "shop", creationTimestamp: ago(600) },
    spec: { type: "up", stackName: "acme/web/dev", ...spec },
    ...(status && { status }),
  };
}
