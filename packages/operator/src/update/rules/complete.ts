/** Updates that are complete. */
import { isComplete } from "@pko/api";
import { endTimeOf } from "../../shared/updates.ts";
import type { UpdatePlan } from "../steps.ts";
import { hasFinalizer, isDeleting, type UpdateView } from "../view.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";

const unchanged = { kind: "unchanged" } as const;
const forgetRun = { kind: "forgetRun" } as const;

export function completeWithFinalizer(view: UpdateView): UpdatePlan | undefined {
  if (!isComplete(view.update) || !hasFinalizer(view)) return undefined;
  return { steps: [forgetRun, { kind: "removeFinalizer" }], outcome: unchanged };
}

export function complete(view: UpdateView): UpdatePlan | undefined {
  const { update, ttlMs, now } = view;
  if (!isComplete(update)) return undefined;
  if (ttlMs === undefined || isDeleting(view)) return { steps: [forgetRun], outcome: unchanged };
  const expiresAt = (parseTimestamp(endTimeOf(update)) ?? now) + ttlMs;
  if (expiresAt > now) return { steps: [forgetRun], outcome: unchanged, requeueAt: expiresAt };
  return { steps: [forgetRun, { kind: "deleteExpired" }], outcome: unchanged };
}
