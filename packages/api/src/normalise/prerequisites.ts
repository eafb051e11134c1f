/** Prerequisites: both spellings in one form. */
import { durationWording, parseDuration } from "../shared/duration.ts";
import type { Prerequisite } from "../stack/prerequisite.ts";
import { stackWording as wording } from "../stack/wording.ts";
import { checkOtherStack } from "./reference.ts";
import type { Scope } from "./scope.ts";

export interface NormalPrerequisite {
  /** The name of a Stack in the same namespace. */
  readonly stack: string;
  /** How long ago at most it may have succeeded; any success will do when undefined. */
  readonly succeededWithinMs?: number;
}

/** One for each Stack; of several demands on one Stack the strictest. */
export function prerequisitesOf(given: readonly Prerequisite[], scope: Scope): NormalPrerequisite[] {
  const strictest = new Map<string, number>();
  for (const [index, prerequisite] of given.entries()) {
    const field = `spec.prerequisites[${index}]`;
    const stack = nameOf(prerequisite, field, scope);
    const within = withinOf(prerequisite, field, scope) ?? Infinity;
    strictest.set(stack, Math.min(within, strictest.get(stack) ?? Infinity));
  }
  return [...strictest].map(([stack, within]) =>
    within === Infinity ? { stack } : { stack, succeededWithinMs: within },
  );
}

function nameOf({ name, type, requirement }: Prerequisite, field: string, scope: Scope): string {
  const { findings } = scope;
  const required = typeof requirement === "string" ? requirement : undefined;
  const stack = name || required || "";
  if (type !== undefined && type !== "Stack") findings.problem(`${field}.type`, wording.prerequisiteType);
  if (!stack || (!name && type === undefined)) findings.problem(field, wording.prerequisiteWithoutName);
  else checkOtherStack(stack, name ? `${field}.name` : `${field}.requirement`, scope);
  if (name && required) findings.problem(field, wording.prerequisiteTwoNames);
  return stack;
}

function withinOf(
  { requirement, succeededWithinDuration }: Prerequisite,
  field: string,
  scope: Scope,
): number | undefined {
  const nested = typeof requirement === "object" && requirement !== null ? requirement : {};
  if (!isRequirement(requirement)) {
    const remedy = "set requirement.succeededWithinDuration, or requirement: NAME with type: Stack";
    scope.findings.problem(`${field}.requirement`, { message: "is neither an object nor a name", remedy });
  }
  const inner = duration(nested.succeededWithinDuration, `${field}.requirement.succeededWithinDuration`, scope);
  const outer = duration(succeededWithinDuration, `${field}.succeededWithinDuration`, scope);
  return inner === undefined || outer === undefined ? (inner ?? outer) : Math.min(inner, outer);
}

/** The schema cannot say it: the field has no one type. */
function isRequirement(requirement: unknown): boolean {
  return requirement === undefined || typeof requirement === "string" || isPlainObject(requirement);
}

const isPlainObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

function duration(text: string | undefined, field: string, { findings }: Scope): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  if (ms === undefined) findings.problem(field, durationWording);
  else if (ms <= 0) findings.problem(field, { message: "can never be met", remedy: "give a duration above zero" });
  return ms;
}
