/** Other Stacks that one waits for. Pure. */
import type { Stack, ValueSource } from "@pko/api";
import { normaliseStack, type NormalStack } from "@pko/api";

import { requestOf, timeOf, timeText } from "./trigger.ts";
import type { PrerequisiteView, StackView } from "./view.ts";

/** A prerequisite's Stack, as far as others care. */
export function prerequisiteView(name: string, stack: Stack | undefined, withinMs?: number): PrerequisiteView {
  const last = stack?.status?.lastUpdate;
  const endedAt = timeOf(last?.lastResyncTime);
  return {
    name,
    ...(stack?.metadata.uid && { uid: stack.metadata.uid }),
    ...(withinMs !== undefined && { withinMs }),
    state: !stack ? "absent" : stack.metadata.deletionTimestamp ? "deleting" : "present",
    succeeded: last?.state === "succeeded" && last.type !== "destroy",
    failed: last?.state === "failed",
    ...(endedAt !== undefined && { endedAt }),
    reconcileRequest: stack ? requestOf(stack) : "",
  };
}

export interface Unmet {
  readonly name: string;
  readonly message: string;
  /** Set where it has to run again, and was not asked to yet. */
  readonly ask?: Ask;
}

export interface Ask {
  readonly name: string;
  readonly uid: string;
  /** The value of its reconcile request. */
  readonly request: string;
}

export function unmetOf(view: StackView): Unmet[] {
  const named = view.prerequisites.flatMap((each) => unmetPrerequisite(each, view.now) ?? []);
  const outputs = view.stackOutputs.flatMap((each) => {
    const { output, from, version } = each;
    const isThere = version !== undefined && from.succeeded && from.state === "present";
    if (isThere) return [];
    const unmet = unmetPrerequisite(from, view.now);
    if (unmet) return [{ ...unmet, message: `${unmet.message}, and its output ${output} is needed` }];
    // It succeeded, perhaps before there was a Secret for its outputs: another run tells.
    return [{ name: from.name, message: `Stack ${from.name} has no output ${output}`, ...askOf(from) }];
  });
  return [...named, ...outputs];
}

function unmetPrerequisite(each: PrerequisiteView, now: number): Unmet | undefined {
  const { name, endedAt, withinMs } = each;
  if (each.state === "absent") return { name, message: `there is no Stack ${name}` };
  if (each.state === "deleting") return { name, message: `Stack ${name} is being deleted` };
  if (!each.succeeded) {
    return {
      name,
      message: each.failed ? `the last update of Stack ${name} failed` : `Stack ${name} has not succeeded yet`,
    };
  }
  if (withinMs === undefined || (endedAt !== undefined && now - endedAt <= withinMs)) return undefined;
  const ended = endedAt === undefined ? "at an unknown time" : `at ${timeText(endedAt)}`;
  return {
    name,
    message: `Stack ${name} last succeeded ${ended}, which is too long ago; it is asked to run again`,
    ...askOf(each),
  };
}

/**
 * The same for all who ask, until it has run: however many Stacks wait for it, it runs once. One that was asked so
 * already is not asked again.
 */
function askOf({ name, uid, endedAt, reconcileRequest }: PrerequisiteView): { ask?: Ask } {
  const request = `after-${timeText(endedAt ?? 0)}`;
  return uid === undefined || request === reconcileRequest ? {} : { ask: { name, uid, request } };
}

/** The Stacks of the same namespace that this one waits for. */
export function dependenciesOf(stack: Stack): string[] {
  const normal = normaliseStack(stack);
  return normal.ok ? namesOf(normal.value) : [];
}

function namesOf(spec: NormalStack): string[] {
  return [
    ...new Set([...spec.prerequisites.map(({ stack }) => stack), ...outputRefsOf(spec).map(({ stack }) => stack)]),
  ];
}

export interface OutputRef {
  readonly stack: string;
  readonly output: string;
}

export function outputRefsOf({ env, config }: Pick<NormalStack, "env" | "config">): OutputRef[] {
  const sources: (ValueSource | NormalStack["config"][number]["from"])[] = [...env, ...config].map(({ from }) => from);
  return sources.flatMap((from) => (from.kind === "stackOutput" ? [{ stack: from.stack, output: from.output }] : []));
}

/** The way from a Stack over those it waits for back to itself; empty when there is none. */
export function cycleFrom(start: string, dependencies: (name: string) => readonly string[]): string[] {
  const seen = new Set<string>();
  const walk = (name: string, path: readonly string[]): string[] => {
    for (const next of dependencies(name)) {
      if (next === start) return [...path, start];
      if (seen.has(next)) continue;
      seen.add(next);
      const found = walk(next, [...path, next]);
      if (found.length > 0) return found;
    }
    return [];
  };
  return walk(start, [start]);
}
