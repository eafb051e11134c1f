/** Prerequisites: both spellings in one normal form. */
import { isRecord } from "../schema/record.ts";
import { durationMessage, parseDuration } from "../shared/duration.ts";
import type { Prerequisite } from "../stack/prerequisite.ts";
import { stackMessages as messages } from "../stack/messages.ts";
import { checkOtherStack } from "./reference.ts";
import type { Scope } from "./scope.ts";

export interface NormalPrerequisite {
  /** The name of a Stack in the same namespace. */
  readonly stack: string;
  /** The maximum time since its last success; undefined if any success is sufficient. */
  readonly succeededWithinMs?: number;
}

/** One for each Stack. If several name the same Stack, the strictest applies. */
export function normalPrerequisites(given: readonly Prerequisite[], scope: Scope): NormalPrerequisite[] {
  const strictest = new Map<string, number>();
  for (const [index, prerequisite] of given.entries()) {
    const field = `spec.prerequisites[${index}]`;
    const stack = stackNameIn(prerequisite, field, scope);
    const within = withinMs(prerequisite, field, scope) ?? Infinity;
    strictest.set(stack, Math.min(within, strictest.get(stack) ?? Infinity));
  }
  return [...strictest].map(([stack, within]) =>
    within === Infinity ? { stack } : { stack, succeededWithinMs: within },
  );
}

function stackNameIn({ name, type, requirement }: Prerequisite, field: string, scope: Scope): string {
  const { findings } = scope;
  const required = typeof requirement === "string" ? requirement : undefined;
  const stack = name || required || "";
  if (type !== undefined && type !== "Stack") findings.problem(`${field}.type`, messages.prerequisiteType);
  if (!stack || (!name && type === undefined)) findings.problem(field, messages.prerequisiteWithoutName);
  else checkOtherStack(stack, name ? `${field}.name` : `${field}.requirement`, scope);
  if (name && required) findings.problem(field, messages.prerequisiteTwoNames);
  return stack;
}

function withinMs(
  { requirement, succeededWithinDuration }: Prerequisite,
  field: string,
  scope: Scope,
): number | undefined {
  const nested = typeof requirement === "object" && requirement !== null ? requirement : {};
  if (!isRequirement(requirement)) {
    const remedy = "set requirement.succeededWithinDuration, or type: Stack and requirement: NAME";
    scope.findings.problem(`${field}.requirement`, { message: "is neither an object nor a string", remedy });
  }
  const inner = duration(nested.succeededWithinDuration, `${field}.requirement.succeededWithinDuration`, scope);
  const outer = duration(succeededWithinDuration, `${field}.succeededWithinDuration`, scope);
  return inner === undefined || outer === undefined ? (inner ?? outer) : Math.min(inner, outer);
}

/** The schema cannot check this, because the field has two types. */
function isRequirement(requirement: unknown): boolean {
  return requirement === undefined || typeof requirement === "string" || isRecord(requirement);
}

function duration(text: string | undefined, field: string, { findings }: Scope): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  if (ms === undefined) findings.problem(field, durationMessage);
  else if (ms <= 0)
    findings.problem(field, { message: "must be greater than zero", remedy: "set a positive duration, such as 30m" });
  return ms;
}
