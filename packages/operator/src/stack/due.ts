/** When is an update due? Pure: the rules of the reference, each under its name. */
import type { LastUpdate, NormalStack } from "@pko/api";

import { isCancelled, isSameTrigger, requestOf, timeOf, typeOf, type Trigger } from "./trigger.ts";
import { lastUpdateOf, type StackView } from "./view.ts";

export type Why = "first" | "generation" | "revision" | "request" | "inputs" | "retry" | "resync" | "destroy";

export type Due =
  | { readonly kind: "now"; readonly why: Why; readonly trigger: Trigger }
  /** After a failure. */
  | { readonly kind: "retryAt"; readonly at: number }
  | { readonly kind: "resyncAt"; readonly at: number }
  | { readonly kind: "never" };

const reasons: Readonly<Record<Why, string>> = {
  first: "the first update",
  generation: "the changed spec",
  revision: "the new revision",
  request: "the reconcile request",
  inputs: "changed outputs of other Stacks, or changed values of Secrets and ConfigMaps",
  retry: "another try",
  resync: "the periodic resync",
  destroy: "the deletion of the Stack",
};

/** In words. */
export function because({ why, trigger }: Pick<Extract<Due, { kind: "now" }>, "why" | "trigger">): string {
  return why === "revision" ? `${reasons[why]} ${trigger.revision}` : reasons[why];
}

interface Ready {
  readonly spec: NormalStack;
  readonly revision: string;
  readonly digest?: string | undefined;
  readonly aliases: readonly string[];
}

const firstRetryMs = 10_000;
const retryFactor = 3;
/** Another update of the same stack is soon over; asking costs little. */
const longestConflictMs = 60_000;

/** Failures in a row after which a person should look. */
export const stalledAfter = 3;

/** Kinds of failure that matter here. */
export const conflict = "conflict";
/** It never began. */
export const withdrawn = "withdrawn";

interface Question {
  readonly last: LastUpdate;
  readonly trigger: Trigger;
  readonly aliases: readonly string[];
}

/** What has changed since the last update, the first of these that has. */
const changes: readonly (readonly [Why, (question: Question) => boolean])[] = [
  ["generation", ({ last, trigger }) => last.generation !== trigger.generation],
  ["request", ({ last, trigger }) => (last.reconcileRequest ?? "") !== trigger.reconcileRequest],
  ["revision", isOtherRevision],
  ["inputs", ({ last, trigger }) => isOtherInput(last.inputs ?? "", trigger.inputs)],
];

/** A tag may be moved to other content, and a new commit may have the same: where both are known, digests decide. */
function isOtherRevision({ last, trigger, aliases }: Question): boolean {
  if (last.digest && trigger.digest) return last.digest !== trigger.digest;
  const commit = (last.state === "succeeded" ? last.lastSuccessfulCommit : last.lastAttemptedCommit) ?? "";
  return commit !== trigger.revision && !aliases.includes(commit);
}

/** What an update that began now would run for. */
export function triggerNow(view: StackView, { spec, revision, digest }: Omit<Ready, "aliases">): Trigger {
  return {
    type: spec.operation,
    generation: view.stack.metadata.generation ?? 0,
    revision,
    ...(digest && { digest }),
    reconcileRequest: lastRequestOf(view),
    inputs: inputsOf(view),
  };
}

export function dueOf(view: StackView, { aliases, ...ready }: Ready): Due {
  const { spec } = ready;
  const last = lastUpdateOf(view);
  const trigger = triggerNow(view, ready);
  const now = (why: Why): Due => ({ kind: "now", why, trigger });
  if (!last?.state) return now("first");
  const change = changes.find(([, isChanged]) => isChanged({ last, trigger, aliases }));
  if (change) return now(change[0]);
  // Whoever has stopped it does not want to see it again at once.
  if (last.state !== "succeeded" && !isCancelled(view.stack, last.name)) {
    const at = retryAtOf(last, spec);
    return view.now >= at ? now("retry") : { kind: "retryAt", at };
  }
  if (!spec.resync.always) return { kind: "never" };
  const at = (timeOf(last.lastResyncTime) ?? 0) + spec.resync.everyMs;
  return view.now >= at ? now("resync") : { kind: "resyncAt", at };
}

/** One that is taken back asks for nothing. */
const lastRequestOf = (view: StackView): string =>
  requestOf(view.stack) || (lastUpdateOf(view)?.reconcileRequest ?? "");

/** A destroy needs no revision: it works from the state. */
export function destroyDueOf(view: StackView, spec: NormalStack): Due {
  const last = lastUpdateOf(view);
  const trigger: Trigger = {
    type: "destroy",
    generation: view.stack.metadata.generation ?? 0,
    revision: last?.lastAttemptedCommit ?? "",
    ...(last?.digest && { digest: last.digest }),
    reconcileRequest: lastRequestOf(view),
    inputs: last?.inputs ?? "",
  };
  if (!last || typeOf(last) !== "destroy" || !isSameTrigger(last, trigger)) {
    return { kind: "now", why: "destroy", trigger };
  }
  if (isCancelled(view.stack, last.name)) return { kind: "never" };
  const at = retryAtOf(last, spec);
  return view.now >= at ? { kind: "now", why: "retry", trigger } : { kind: "retryAt", at };
}

export function retryAtOf(last: LastUpdate, { retry }: Pick<NormalStack, "retry">): number {
  const failures = Math.max(1, last.failures ?? 1);
  const full = firstRetryMs * retryFactor ** Math.min(failures - 1, 30);
  const cap =
    last.failure === conflict && retry.onConflict
      ? Math.min(longestConflictMs, retry.maxBackoffMs)
      : retry.maxBackoffMs;
  return (timeOf(last.lastResyncTime) ?? 0) + Math.min(full, cap);
}

/** What the update would be given by other Stacks, Secrets and ConfigMaps, as one text. */
function inputsOf({ stackOutputs, configInputs }: StackView): string {
  const outputs = stackOutputs.map(({ stack, output, version = "" }) => `${stack}.${output}@${version}`);
  const values = configInputs.map(({ name, version }) => `${name}@${version}`);
  return [...new Set([...outputs, ...values])].toSorted().join(" ");
}

/**
 * Whether one that the last update was given is another now. One that it was not given came with a change of the spec, or
 * was there when nobody noted it, as in the days of another operator: neither is news.
 */
function isOtherInput(last: string, now: string): boolean {
  const versions = new Map(last.split(" ").map(nameAndVersion));
  return now.split(" ").some((input) => {
    const [name, version] = nameAndVersion(input);
    return versions.has(name) && versions.get(name) !== version;
  });
}

function nameAndVersion(input: string): [name: string, version: string] {
  const at = input.lastIndexOf("@");
  return at < 0 ? [input, ""] : [input.slice(0, at), input.slice(at + 1)];
}
