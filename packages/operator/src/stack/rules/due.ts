/** When is an update due? Pure. */
import type { LastUpdate, NormalStack, UpdateType } from "@pko/api";

import { formatInputs, type Input, parseInputs } from "../../shared/inputs.ts";
import { jittered } from "../../shared/pauses.ts";
import { parsePastTimestamp } from "../../shared/parse-timestamp.ts";
import { runDigest } from "../desired/run.ts";
import type { WorkspaceOrigin } from "../desired/workspace.ts";
import { correctsDrift } from "../history/drift.ts";
import { skippedCommit } from "../history/skipped-commit.ts";
import {
  isCancelled,
  isSameTrigger,
  lastTypeOf,
  reconcileRequestOf,
  type Trigger,
  type TriggerReason,
} from "../history/trigger.ts";
import { conflictFailure, isDeleting, lastUpdateIn, validSpec, type StackView } from "../view.ts";

export type Due =
  | { readonly kind: "now"; readonly reason: TriggerReason; readonly trigger: Trigger }
  /** After a failure. */
  | { readonly kind: "retryAt"; readonly at: number }
  /** Failed `maxFailures` times: not retried until something changes. */
  | { readonly kind: "exhausted"; readonly maxFailures: number }
  | { readonly kind: "resyncAt"; readonly at: number }
  | { readonly kind: "never" };

/** What is needed to run the next update. */
export interface DueUpdate {
  readonly spec: NormalStack;
  readonly origin: WorkspaceOrigin;
  readonly due: Extract<Due, { kind: "now" }>;
}

interface ReadySource {
  readonly spec: NormalStack;
  readonly revision: string;
  readonly digest?: string | undefined;
  readonly aliases: readonly string[];
}

const firstRetryMs = 10_000;
const retryFactor = 3;
/** With retryOnUpdateConflict: the other update usually ends soon. */
const longestConflictMs = 60_000;

interface Comparison {
  readonly last: LastUpdate;
  readonly trigger: Trigger;
  readonly aliases: readonly string[];
  /** Whether the path filters select nothing that the revision changes. */
  readonly isSkipped: boolean;
}

/** Changes since the last update. The first that applies is the reason of the next. */
const changes: readonly (readonly [TriggerReason, (comparison: Comparison) => boolean])[] = [
  ["generation", ({ last, trigger }) => last.generation !== trigger.generation],
  ["request", ({ last, trigger }) => (last.reconcileRequest ?? "") !== trigger.reconcileRequest],
  ["revision", isOtherRevision],
  ["inputs", ({ last, trigger }) => hasChangedInput(last.inputs ?? "", trigger.inputs)],
];

/** A tag may move to other content, and a new commit may have the same content: digests decide where both are known. */
function isOtherRevision({ last, trigger, aliases, isSkipped }: Comparison): boolean {
  if (isSkipped) return false;
  if (last.digest && trigger.digest) return last.digest !== trigger.digest;
  const commit = (last.state === "succeeded" ? last.lastSuccessfulCommit : last.lastAttemptedCommit) ?? "";
  return commit !== trigger.revision && !aliases.includes(commit);
}

/** Undefined if the spec is invalid, or the source has no revision to run. */
export function nextDue(view: StackView): Due | undefined {
  const spec = validSpec(view);
  if (!spec) return undefined;
  if (isDeleting(view)) return destroyDue(view, spec);
  const { source } = view;
  if (source.kind !== "ready") return undefined;
  const { revision, digest, aliases } = source;
  return updateDue(view, { spec, revision, digest, aliases });
}

/** The trigger of an update that would start now. */
export function currentTrigger(view: StackView, { spec, revision, digest }: Omit<ReadySource, "aliases">): Trigger {
  return {
    type: spec.operation,
    generation: view.stack.metadata.generation ?? 0,
    revision,
    ...(digest && { digest }),
    reconcileRequest: latestRequest(view),
    inputs: currentInputs(view),
    ...runField(view, spec, spec.operation),
  };
}

const runField = ({ stack }: StackView, spec: NormalStack, type: UpdateType): Pick<Trigger, "run"> =>
  spec.approval ? { run: runDigest(stack, spec, type) } : {};

function updateDue(view: StackView, { aliases, ...source }: ReadySource): Due {
  const { spec } = source;
  const last = lastUpdateIn(view);
  const trigger = currentTrigger(view, source);
  const now = (reason: TriggerReason): Due => ({ kind: "now", reason, trigger });
  if (!last?.state) return now("first");
  const isSkipped = skippedCommit(view) !== undefined;
  const change = changes.find(([, isChanged]) => isChanged({ last, trigger, aliases, isSkipped }));
  if (change) return now(change[0]);
  // A cancelled update is not retried.
  if (last.state !== "succeeded" && !isCancelled(view.stack, last.name)) {
    return retryDue(last, { spec, trigger, view });
  }
  if (isCorrectionDue(view, spec)) return now("drift");
  if (!spec.resync.always) return { kind: "never" };
  const everyMs = jittered(spec.resync.everyMs, view.stack.metadata.uid ?? "");
  const at = (parsePastTimestamp(last.lastResyncTime, view.now) ?? 0) + everyMs;
  return view.now >= at ? now("resync") : { kind: "resyncAt", at };
}

/** Once for each check that finds drift: the next check decides whether there is more to correct. */
function isCorrectionDue({ stack, now }: StackView, spec: NormalStack): boolean {
  const { lastUpdate, drift } = stack.status ?? {};
  const updatedAt = parsePastTimestamp(lastUpdate?.lastResyncTime, now) ?? 0;
  const checkedAt = parsePastTimestamp(drift?.checkedAt, now) ?? 0;
  return correctsDrift(stack, spec) && updatedAt <= checkedAt;
}

/** Removing the annotation requests nothing. */
const latestRequest = (view: StackView): string =>
  reconcileRequestOf(view.stack) || (lastUpdateIn(view)?.reconcileRequest ?? "");

/** A destroy needs no revision: it works from the state. */
export function destroyDue(view: StackView, spec: NormalStack): Due {
  const last = lastUpdateIn(view);
  const trigger: Trigger = {
    type: "destroy",
    generation: view.stack.metadata.generation ?? 0,
    revision: last?.lastAttemptedCommit ?? "",
    ...(last?.digest && { digest: last.digest }),
    reconcileRequest: latestRequest(view),
    inputs: last?.inputs ?? "",
    ...runField(view, spec, "destroy"),
  };
  if (!last || lastTypeOf(last) !== "destroy" || !isSameTrigger(last, trigger)) {
    return { kind: "now", reason: "destroy", trigger };
  }
  if (isCancelled(view.stack, last.name)) return { kind: "never" };
  return retryDue(last, { spec, trigger, view });
}

interface Retry {
  readonly spec: NormalStack;
  readonly trigger: Trigger;
  readonly view: StackView;
}

/** After a failure, if nothing has changed. */
function retryDue(last: LastUpdate, { spec, trigger, view }: Retry): Due {
  const { maxFailures } = spec;
  if (maxFailures !== undefined && (last.failures ?? 1) >= maxFailures) return { kind: "exhausted", maxFailures };
  const at = retryTime(view, last, spec);
  return view.now >= at ? { kind: "now", reason: "retry", trigger } : { kind: "retryAt", at };
}

/** Stacks that failed together, for example because of an outage, are not retried together. */
export function retryTime({ stack, now }: StackView, last: LastUpdate, { retry }: Pick<NormalStack, "retry">): number {
  const failures = Math.max(1, last.failures ?? 1);
  const backoff = firstRetryMs * retryFactor ** Math.min(failures - 1, 30);
  const limit =
    last.failure === conflictFailure && retry.onConflict
      ? Math.min(longestConflictMs, retry.maxBackoffMs)
      : retry.maxBackoffMs;
  const pauseMs = jittered(Math.min(backoff, limit), stack.metadata.uid ?? "");
  const failedAt = parsePastTimestamp(last.lastResyncTime, now);
  return failedAt === undefined ? now : failedAt + pauseMs;
}

function currentInputs({ stackOutputs, configInputs }: StackView): string {
  const outputs = stackOutputs.map(({ stack, output, version = "" }): Input => [`${stack}.${output}`, version]);
  const values = configInputs.map(({ name, version }): Input => [name, version]);
  return formatInputs([...outputs, ...values]);
}

/**
 * Whether an input of the last update has another version now. An input that the last update does not record does not count as a change:
 * it is new in the spec, or the last update was the Go operator's, which records no inputs.
 */
function hasChangedInput(last: string, now: string): boolean {
  const versions = new Map(parseInputs(last));
  return parseInputs(now).some(([name, version]) => versions.has(name) && versions.get(name) !== version);
}
