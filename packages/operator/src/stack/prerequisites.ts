/** Other Stacks that one waits for. Pure. */
import type { LastUpdate, Stack, ValueSource } from "@pko/api";
import { normaliseStack, reconcileRequestAnnotation, type NormalStack } from "@pko/api";

import { stackOutputsSecretOf } from "../shared/output-keys.ts";
import { requestOf, timeOf, timeText, typeOf } from "./trigger.ts";
import type { PrerequisiteView, StackOutputView, StackView } from "./view.ts";

/** A prerequisite's Stack, as far as others care. */
export function prerequisiteView(name: string, stack: Stack | undefined, withinMs?: number): PrerequisiteView {
  const last = stack?.status?.lastUpdate;
  const endedAt = timeOf(last?.lastResyncTime);
  return {
    name,
    ...(stack?.metadata.uid && { uid: stack.metadata.uid }),
    ...(withinMs !== undefined && { withinMs }),
    state: !stack ? "absent" : stack.metadata.deletionTimestamp ? "deleting" : "present",
    last: lastOf(last),
    isCurrent: stack !== undefined && isCurrent(stack, last),
    ...(endedAt !== undefined && { endedAt }),
    reconcileRequest: stack ? requestOf(stack) : "",
  };
}

function lastOf(last: LastUpdate | undefined): PrerequisiteView["last"] {
  if (last?.state === "failed") return "failed";
  if (last?.state !== "succeeded" || typeOf(last) === "destroy") return "none";
  return typeOf(last) === "preview" ? "previewed" : "deployed";
}

/** Whether its last update was for what is wanted of it now. */
function isCurrent(stack: Stack, last: LastUpdate | undefined): boolean {
  const request = requestOf(stack);
  return last?.generation === stack.metadata.generation && (request === "" || request === last?.reconcileRequest);
}

interface Unmet {
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
  const named = view.prerequisites.flatMap((each) => unmetPrerequisite(each, view) ?? []);
  const outputs = view.stackOutputs.flatMap((each) => unmetOutput(each, view) ?? []);
  return [...named, ...outputs];
}

function unmetOutput(wanted: StackOutputView, view: StackView): Unmet | undefined {
  const { output, from, version, others } = wanted;
  const unmet = unmetPrerequisite(from, view);
  if (unmet) return { ...unmet, message: `${unmet.message}, and its output ${output} is needed` };
  if (version !== undefined) return undefined;
  const { name } = from;
  if (wanted.isForeign) {
    const secret = stackOutputsSecretOf(name);
    return { name, message: `Secret ${secret} is not that of Stack ${name}, whose output ${output} is needed` };
  }
  if (others) {
    const known = others.length > 0 ? `it has ${others.slice(0, 20).join(", ")}` : "it has none at all";
    return { name, message: `Stack ${name} has no output ${output}: ${known}` };
  }
  // It was deployed before there was a Secret for its outputs, as by another operator: one more run makes it.
  const message = `the outputs of Stack ${name} were not kept, and its output ${output} is needed`;
  const ask = from.last === "deployed" ? askOf(from, outputsRequest) : {};
  const remedy = `; have it run by another value of its annotation ${reconcileRequestAnnotation}`;
  return { name, message: ask.ask ? message : message + remedy, ...ask };
}

/** One value for all times: whoever has run for it once, and has no outputs still, is not asked again. */
const outputsRequest = "outputs-are-needed";

function unmetPrerequisite(each: PrerequisiteView, { spec, now }: StackView): Unmet | undefined {
  const { name, endedAt, withinMs } = each;
  if (each.state === "absent") return { name, message: `there is no Stack ${name}` };
  if (each.state === "deleting") return { name, message: `Stack ${name} is being deleted` };
  if (each.last === "none") return { name, message: `Stack ${name} has not succeeded yet` };
  if (!each.isCurrent)
    return { name, message: `Stack ${name} has changed, or was asked to run, and has not run since` };
  if (each.last === "failed") return { name, message: `the last update of Stack ${name} failed` };
  // Nothing is deployed by a preview; it is enough for another one.
  if (each.last === "previewed" && !(spec.ok && spec.value.operation === "preview")) {
    return { name, message: `Stack ${name} was previewed only, and has to be deployed` };
  }
  if (withinMs === undefined || (endedAt !== undefined && now - endedAt <= withinMs)) return undefined;
  const ended = endedAt === undefined ? "at an unknown time" : `at ${timeText(endedAt)}`;
  return {
    name,
    message: `Stack ${name} last succeeded ${ended}, which is too long ago; it is asked to run again`,
    ...askOf(each, `after-${timeText(endedAt ?? 0)}`),
  };
}

/**
 * The same for all who ask, until it has run: however many Stacks wait for it, it runs once. One that was asked so
 * already is not asked again.
 */
function askOf({ name, uid, reconcileRequest }: PrerequisiteView, request: string): { ask?: Ask } {
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
