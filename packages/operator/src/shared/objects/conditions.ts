/** Conditions of any kind: how they are found, and when they last changed. */
import type { Condition } from "@pko/api";
import { timestamp } from "@pko/kube";

interface ObjectWithConditions {
  readonly metadata: { readonly generation?: number };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

export function findCondition({ status }: ObjectWithConditions, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

export function isConditionTrue(object: ObjectWithConditions, type: string): boolean {
  return findCondition(object, type)?.status === "True";
}

/** The statements without their texts. */
export const withoutMessages = (conditions: readonly Condition[] = []): Condition[] =>
  conditions.map((condition): Condition => Object.assign({}, condition, { message: "" }));

/** The condition as it is written: its transition time changes only with its status. */
export function conditionAt(
  object: ObjectWithConditions,
  statement: Pick<Condition, "type" | "status" | "reason" | "message">,
  now: number,
): Condition {
  const before = findCondition(object, statement.type);
  return {
    ...statement,
    lastTransitionTime: before?.status === statement.status ? before.lastTransitionTime : timestamp(now),
    observedGeneration: object.metadata.generation ?? 0,
  };
}
