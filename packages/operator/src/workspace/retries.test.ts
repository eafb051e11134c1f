import { expect, test } from "bun:test";

import { planWorkspace } from "./plan.ts";
import { Retries } from "./retries.ts";
import { now, view } from "./testing/views.ts";
import type { Outcome } from "./outcome.ts";

const key = "team/web";
const failed: Outcome = {
  kind: "failed",
  failure: { phase: "source", reason: "other", message: "no route", lines: [] },
};
const { workspace } = view();

function failedOnce(): { retries: Retries; afterMs: number } {
  const retries = new Retries();
  const passed = { view: view(), plan: planWorkspace(view()), outcome: failed };
  const afterMs = retries.schedule(key, passed, { monotonic: 1000 });
  expect(afterMs).toBeGreaterThan(0);
  return { retries, afterMs: afterMs ?? 0 };
}

test.each([0, 3_600_000, -3_600_000])("is due after its delay when the wall clock is set by %d ms", (step) => {
  const { retries, afterMs } = failedOnce();
  const early = { now: now + step + 1, monotonic: 1000 + 1 };
  expect(retries.retryAt(key, workspace, early)).toBe(early.now + afterMs - 1);
  const due = { now: now + step + afterMs, monotonic: 1000 + afterMs };
  expect(retries.retryAt(key, workspace, due)).toBe(due.now);
});

test("keeps its due time while it waits", () => {
  const { retries, afterMs } = failedOnce();
  const later = { now: now + 1, monotonic: 1001 };
  const waiting = { ...view(), retryAt: retries.retryAt(key, workspace, later) ?? 0 };
  const passed = { view: waiting, plan: planWorkspace(waiting), outcome: failed };
  expect(retries.schedule(key, passed, later)).toBe(afterMs - 1);
});

test("is due at once when an input changed, when it is requested, and not at all for another spec", () => {
  const { retries } = failedOnce();
  const times = { now, monotonic: 1001 };
  const annotations = { "pulumi.com/reconciliation-request": "again" };
  const requested = { metadata: { ...workspace.metadata, annotations } };
  expect(retries.retryAt(key, requested, times)).toBeLessThanOrEqual(now);
  const other = { metadata: { ...workspace.metadata, generation: 3 } };
  expect(retries.retryAt(key, other, times)).toBeUndefined();
  retries.hasten(key);
  expect(retries.retryAt(key, workspace, times)).toBeLessThanOrEqual(now);
});
