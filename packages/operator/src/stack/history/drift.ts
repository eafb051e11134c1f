/** What the Stack's status records of drift: the results of checks, and that an update has corrected it. Pure. */
import {
  driftRequestAnnotation,
  type NormalStack,
  type Stack,
  type StackDrift,
  type StackReason,
  type UpdateDrift,
} from "@pko/api";
import { timestamp } from "@pko/kube";

import { isConditionTrue } from "../../shared/objects/conditions.ts";
import { boundedDrift, driftCount, driftSummary } from "../../shared/drift.ts";
import { jittered } from "../../shared/pauses.ts";
import { parsePastTimestamp } from "../../shared/parse-timestamp.ts";
import { truncate } from "../../shared/truncate.ts";
import * as messages from "../messages.ts";
import { presentStatus, validSpec, type StackView, type UpdateFacts } from "../view.ts";

export interface DriftRecord {
  readonly drift: StackDrift;
  readonly verdict: DriftVerdict;
}

/** The condition Drifted. */
export interface DriftVerdict {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: StackReason<"Drifted">;
  readonly message: string;
}

/** Every watcher of the Stack receives the status; the Update has the rest. */
const limits = { resources: 20, chars: 8192 };
const longestSummary = 1024;

export const driftRequestOf = ({ metadata }: Stack): string => metadata.annotations?.[driftRequestAnnotation] ?? "";

/** Whether the status still shows a result: nobody would update it without a schedule or a request. */
export function isDriftShown({ stack, spec }: Pick<StackView, "stack" | "spec">): boolean {
  return !spec.ok || spec.value.driftDetection !== undefined || driftRequestOf(stack) !== "";
}

/** Whether updates refresh, because drift is known and has to be corrected. */
export function correctsDrift(stack: Stack, { driftDetection, operation }: NormalStack): boolean {
  const { drift } = stack.status ?? {};
  if (driftDetection?.action !== "Correct" || operation !== "up" || !drift || driftCount(drift) === 0) return false;
  return isConditionTrue(stack, "Drifted");
}

/** Finished checks whose result the status does not show. */
export function unrecordedChecks({ stack, updates }: Pick<StackView, "stack" | "updates">): UpdateFacts[] {
  const recorded = stack.status?.drift?.updateName;
  return updates.filter(
    ({ isDriftCheck, state, hasFinalizer, name }) =>
      isDriftCheck && state !== "unfinished" && hasFinalizer && name !== recorded,
  );
}

export function checkRecord(view: StackView, check: UpdateFacts): DriftRecord {
  const request = check.trigger?.driftRequest ?? "";
  if (check.state !== "succeeded") {
    return failedCheck(view, { updateName: check.name, request, message: failureOf(view, check) });
  }
  return foundDrift(view, { check, request, found: check.drift ?? { resources: [] } });
}

interface Finding {
  readonly check: UpdateFacts;
  readonly request: string;
  readonly found: UpdateDrift;
}

function foundDrift(view: StackView, { check, request, found }: Finding): DriftRecord {
  const isDrifted = driftCount(found) > 0;
  const summary = truncate(driftSummary(found), longestSummary);
  const { corrected } = presentStatus(view).drift ?? {};
  const drift = {
    ...checkFields(view, { updateName: check.name, request, endedAt: check.endedAt }),
    ...boundedDrift(found, limits),
    ...(isDrifted && { summary, ...(corrected && { corrected }) }),
  };
  if (!isDrifted) return { drift, verdict: { status: "False", reason: "NoDrift", message: messages.noDrift } };
  const message = messages.driftDetected({
    count: driftCount(found),
    summary,
    isCorrected: validSpec(view)?.driftDetection?.action === "Correct",
    ...(corrected?.summary === summary && { corrected }),
  });
  return { drift, verdict: { status: "True", reason: "DriftDetected", message } };
}

function failureOf({ workspace }: StackView, { message, failure }: UpdateFacts): string {
  if (workspace.kind === "present" && workspace.state.kind === "failed") {
    return messages.workspaceFailed(workspace.object.metadata.name ?? "", workspace.state.message);
  }
  return message ?? failure ?? messages.noError;
}

interface Failure {
  /** Absent if the check could not be started. */
  readonly updateName?: string;
  readonly request: string;
  readonly message: string;
}

/** What the last successful check found stays, because it is the best that is known. */
export function failedCheck(view: StackView, { message, ...check }: Failure): DriftRecord {
  const { resources = [], omitted, summary, corrected, failures = 0 } = presentStatus(view).drift ?? {};
  const drift: StackDrift = {
    ...checkFields(view, check),
    resources,
    ...(omitted !== undefined && { omitted }),
    ...(summary !== undefined && { summary }),
    ...(corrected && { corrected }),
    failures: failures + 1,
  };
  const retryAt = nextCheckTime(view, drift);
  return {
    drift,
    verdict: { status: "Unknown", reason: "DriftCheckFailed", message: messages.driftCheckFailed(message, retryAt) },
  };
}

interface CheckIdentity {
  readonly updateName?: string;
  readonly request: string;
  readonly endedAt?: number | undefined;
}

/** At least a second after the previous check, since the next check is named after this time. Never in the future: see `endTime`. */
function checkFields(view: StackView, { updateName, request, endedAt = view.now }: CheckIdentity) {
  const before = presentStatus(view).drift;
  const previous = parsePastTimestamp(before?.checkedAt, view.now);
  const end = Math.min(endedAt, view.now);
  const checkedAt = previous === undefined ? end : Math.max(end, previous + 1000);
  const known = request || before?.request;
  return {
    checkedAt: timestamp(checkedAt),
    ...(updateName !== undefined && { updateName }),
    ...(known && { request: known }),
  };
}

/** When the next periodic check is due: after a failed one later each time, but never before the interval. */
export function nextCheckTime(
  view: Pick<StackView, "stack" | "spec" | "now">,
  { checkedAt, failures = 0 }: StackDrift,
): number | undefined {
  const spec = validSpec(view);
  const everyMs = spec?.driftDetection?.everyMs;
  if (!spec || everyMs === undefined) return undefined;
  const backoffMs = everyMs * 2 ** Math.min(Math.max(0, failures - 1), 30);
  const pauseMs = Math.max(everyMs, Math.min(backoffMs, spec.retry.maxBackoffMs));
  return (parsePastTimestamp(checkedAt, view.now) ?? 0) + jittered(pauseMs, view.stack.metadata.uid ?? "");
}

/** An update that refreshed the state has made it match the resources. Undefined if no drift was known. */
export function correctionRecord(view: StackView, update: UpdateFacts): DriftRecord | undefined {
  const before = presentStatus(view).drift;
  if (!update.refreshes || update.state !== "succeeded" || !before || driftCount(before) === 0) return undefined;
  const { omitted: _, summary = "", ...rest } = before;
  const corrected = { updateName: update.name, time: timestamp(update.endedAt ?? view.now), summary };
  return {
    drift: { ...rest, resources: [], corrected },
    verdict: { status: "False", reason: "NoDrift", message: messages.driftCorrected(update.name) },
  };
}
