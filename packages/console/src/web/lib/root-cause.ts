/** The Stack whose state is the reason that another one waits, as `kubectl pulumi why` finds it. Pure. */
import { decidingCondition, stateOf, type Stack } from "@pko/api/browser";

import { neededStacks } from "./dependencies.ts";
import { isObserved } from "./explain.ts";

export interface RootCause {
  /** Names, from the Stack in question to the one that has the cause. */
  readonly path: readonly string[];
  /** Undefined if it does not exist. */
  readonly stack: Stack | undefined;
}

/** Whether the state of other Stacks may explain that of this one. */
export const waitsForOthers = (stack: Stack): boolean =>
  isObserved(stack) && decidingCondition(stack)?.reason === "PrerequisiteNotSatisfied";

/** `others` are the Stacks of the namespace. Undefined if the Stack itself has the cause. */
export function rootCause(stack: Stack, others: readonly Stack[]): RootCause | undefined {
  const byName = new Map(others.map((each) => [each.metadata.name ?? "", each]));
  const name = stack.metadata.name ?? "";
  const found = follow(name, new Map([...byName, [name, stack]]), new Set());
  return found.path.length > 1 ? found : undefined;
}

/** The first Stack that is not up to date counts; one that was visited before is part of a cycle, and explains nothing. */
function follow(name: string, stacks: ReadonlyMap<string, Stack>, visited: ReadonlySet<string>): RootCause {
  const stack = stacks.get(name);
  const own: RootCause = { path: [name], stack };
  if (!stack || !waitsForOthers(stack)) return own;
  const seen = new Set([...visited, name]);
  for (const other of neededStacks(stack.spec).filter((each) => !seen.has(each))) {
    const cause = follow(other, stacks, seen);
    if (!cause.stack || !isUpToDate(cause.stack)) return { ...cause, path: [name, ...cause.path] };
  }
  return own;
}

function isUpToDate(stack: Stack): boolean {
  const state = stateOf(stack);
  return isObserved(stack) && (state === "Ready" || state === "Drifted");
}
