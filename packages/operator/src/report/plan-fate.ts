/** What became of the plan that an Update has made. Pure. */
import { isComplete, triggerAnnotation, type Stack, type Update } from "@pko/api";

import { isWithdrawn } from "../shared/updates.ts";
import type { PlanFate } from "./view.ts";

interface Planned {
  readonly stack: Stack;
  readonly update: Update;
  /** The other Updates of the Stack that are later than this one. */
  readonly later: readonly Update[];
}

/** Undefined for an Update that has made no plan with changes. */
export function planFate({ stack, update, later }: Planned): PlanFate | undefined {
  if (update.spec?.savePlan !== true || update.status?.plan?.changes !== true) return undefined;
  const applies = ({ spec }: Update): boolean => spec?.applyPlan?.updateUid === update.metadata.uid;
  const by = later.find((other) => applies(other) && !isWithdrawn(other));
  if (by) return isComplete(by) ? { kind: "applied", by } : { kind: "open" };
  const { approval } = stack.status ?? {};
  const state = approval?.updateUid === update.metadata.uid ? approval?.state : undefined;
  if (state === "Rejected") return { kind: "rejected" };
  const isReplaced = later.some((other) => replacesPlan(other) && !applies(other));
  return { kind: state === "Superseded" || isReplaced ? "superseded" : "open" };
}

/** The status of the Stack in the cache may be older than the plan; an Update that the Stack created after it is proof. */
const replacesPlan = ({ metadata, spec }: Update): boolean =>
  metadata.annotations?.[triggerAnnotation] !== undefined && (spec?.savePlan === true || spec?.type !== "refresh");
