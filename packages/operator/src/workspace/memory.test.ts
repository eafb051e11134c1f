import { describe, expect, test } from "bun:test";
import type { Key } from "@pko/kube";

import {
  knownCertificate as knownCertificateAt,
  remember,
  retryImmediately,
  retryOf,
  type WorkspaceMemory,
} from "./memory.ts";
import type { Outcome } from "./outcome.ts";
import { planWorkspace } from "./rules/index.ts";
import { ago, given, input, notReady, now, retryAt, set, view, type Trait } from "./testing/views.ts";

const key: Key = "team/web";
const failed: Outcome = {
  kind: "failed",
  failure: { phase: "source", reason: "other", message: "no route", lines: [] },
};
const { workspace } = view();
const moment = { now, monotonic: 1000, memory: undefined };
const plan = (outcome: Outcome) => ({ steps: [], outcome });

const failedOnce = (): WorkspaceMemory => remember(view(), plan(failed), moment);
const firstRetryMs = 60_000;

describe("a failed preparation", () => {
  test.each([0, 3_600_000, -3_600_000])("is due after its delay when the wall clock is set by %d ms", (step) => {
    const memory = failedOnce();
    const early = { now: now + step + 1, monotonic: 1000 + 1, memory };
    expect(retryOf(workspace, early)).toEqual({ failures: 1, at: early.now + firstRetryMs - 1 });
    const due = { now: now + step + firstRetryMs, monotonic: 1000 + firstRetryMs, memory };
    expect(retryOf(workspace, due)?.at).toBe(due.now);
  });

  test("keeps its due time until then", () => {
    const memory = failedOnce();
    const later = { now: now + 1, monotonic: 1001, memory };
    const retry = retryOf(workspace, later) ?? { failures: 0, at: 0 };
    expect(remember({ ...view(given({ retry })), now: later.now }, plan(failed), later)).toEqual(memory);
  });

  test("stays due immediately if an input changed during the pass", () => {
    const memory = new Map([[key, failedOnce()]]);
    const later = { now: now + 1, monotonic: 1001 };
    const retry = retryOf(workspace, { ...later, memory: memory.get(key) }) ?? { failures: 0, at: 0 };
    retryImmediately(memory, key);
    const after = { ...later, memory: memory.get(key) };
    const passed = { ...view(given({ retry })), now: later.now };
    for (const outcome of [failed, { kind: "unchanged" }] as const) {
      expect(remember(passed, plan(outcome), after).retry).toMatchObject({ failures: 1, dueAt: 0 });
    }
  });

  test("is due later after each attempt", () => {
    const memory = failedOnce();
    const due = { now: now + firstRetryMs, monotonic: 1000 + firstRetryMs, memory };
    const retry = retryOf(workspace, due) ?? { failures: 0, at: 0 };
    const again = remember({ ...view(given({ retry, isRetried: true })), now: due.now }, plan(failed), due);
    expect(again.retry).toMatchObject({ failures: 2, dueAt: due.monotonic + 2 * firstRetryMs });
  });

  test("is not due while it is retried", () => {
    const memory = failedOnce();
    const retried = view(given({ isRetried: true }), retryAt(now));
    const trying = remember(retried, plan({ kind: "unchanged" }), { ...moment, memory });
    expect(trying.retry).toMatchObject({ failures: 1, dueAt: Infinity });
  });

  test("has begun when its new pod was requested, and not later", () => {
    const due = { now, monotonic: 5000, memory: failedOnce() };
    const backedOff = view(
      notReady(999, "InstallationFailed"),
      set({ replicas: 0, backedOffGeneration: 2 }),
      retryAt(now),
    );
    const memory = remember(backedOff, planWorkspace(backedOff), due);
    const later = { now: now + 7000, monotonic: 12_000, memory };
    const retry = retryOf(workspace, later);
    expect(retry).toEqual({ failures: 1, at: Infinity, since: now });
    const starting = { ...view(notReady(999, "InstallationFailed"), set()), now: later.now, ...(retry && { retry }) };
    expect(remember(starting, planWorkspace(starting), later)).toEqual({
      ...memory,
      written: { uid: "s1", generation: 1 },
    });
  });

  test("is due immediately when an input changed or a reconcile was requested, and never for another spec", () => {
    const memory = new Map([[key, failedOnce()]]);
    const times = () => ({ now, monotonic: 1001, memory: memory.get(key) });
    const annotations = { "pulumi.com/reconciliation-request": "again" };
    const requested = { metadata: { ...workspace.metadata, annotations } };
    expect(retryOf(requested, times())?.at).toBeLessThanOrEqual(now);
    const other = { metadata: { ...workspace.metadata, generation: 3 } };
    expect(retryOf(other, times())).toBeUndefined();
    retryImmediately(memory, key);
    expect(retryOf(workspace, times())?.at).toBeLessThanOrEqual(now);
  });

  test("is forgotten when the workspace is ready", () => {
    const ready: Outcome = { kind: "ready", address: "a:1" };
    expect(remember(view(retryAt(now)), plan(ready), { ...moment, memory: failedOnce() })).toEqual({});
  });

  test("is not retried immediately if an earlier process scaled the workspace to zero", () => {
    const backedOff = view(notReady(999, "InstallationFailed"), set({ replicas: 0, backedOffGeneration: 2 }));
    const { retry } = remember(backedOff, plan({ kind: "unchanged" }), moment);
    expect(retry).toMatchObject({ failures: 1, dueAt: 1000 + 600_000 });
  });
});

describe("a name conflict", () => {
  const since = (outcome: Outcome, ...traits: Trait[]): number | undefined =>
    remember(view(...traits), plan(outcome), moment).conflictSince;
  const blocked: Outcome = { kind: "blocked", message: "m" };

  test("is remembered with the time at which it started", () => {
    expect(since(blocked)).toBe(now);
    expect(since(blocked, given({ conflictSince: ago(60) }))).toBe(ago(60));
    expect(since({ kind: "unchanged" }, given({ conflictSince: ago(60) }))).toBe(ago(60));
    expect(since({ kind: "preparing" }, given({ conflictSince: ago(60) }))).toBeUndefined();
  });
});

test("state that would be lost with the pod is remembered until the inputs are read again", () => {
  const unchanged = plan({ kind: "unchanged" });
  const memory = remember(view(input({ ephemeralState: "/state" })), unchanged, moment);
  expect(memory.losesState).toBe(true);
  const { inputs: _, ...withoutInputs } = view();
  expect(remember(withoutInputs, unchanged, { ...moment, memory }).losesState).toBe(true);
  expect(remember(view(), unchanged, { ...moment, memory }).losesState).toBeUndefined();
});

describe("a valid certificate is not read again", () => {
  const at = (monotonic: number, memory?: WorkspaceMemory) => ({ now, monotonic, memory });
  const knownCertificate = { ca: "ca", cert: "cert", key: "key" };
  const known = view(given({ certificate: "current", knownCertificate }));
  const memory = remember(known, plan({ kind: "preparing" }), at(1000));

  test("for a minute, and its key is not kept", () => {
    expect(knownCertificateAt(at(60_999, memory))).toEqual({ ca: "ca", cert: "cert" });
    const later = remember(known, plan({ kind: "ready", address: "a" }), at(60_999, memory));
    expect(knownCertificateAt(at(61_000, later))).toBeUndefined();
  });

  test("unless it is another one, which was read now", () => {
    const other = view(given({ certificate: "current", knownCertificate: { ca: "ca", cert: "other" } }));
    const later = remember(other, plan({ kind: "ready", address: "a" }), at(60_999, memory));
    expect(knownCertificateAt(at(61_000, later))).toEqual({ ca: "ca", cert: "other" });
  });

  test("unless it is not valid", () => {
    const outdated = remember(
      view(given({ certificate: "trustOutdated", knownCertificate })),
      plan({ kind: "preparing" }),
      at(1000),
    );
    expect(outdated.certificate).toBeUndefined();
  });
});
