import type { StackDrift, StackStatus } from "@pko/api";
import { timestamp } from "@pko/kube";
import { describe, expect, test } from "bun:test";

import { findCondition } from "../../../shared/objects/conditions.ts";
import { stackEventsFor } from "../../events.ts";
import { updateNameFor } from "../../history/trigger.ts";
import { stackStatus } from "../../status.ts";
import {
  ago,
  anUpdate,
  aTrigger,
  cases,
  failed,
  messageFor,
  now,
  prerequisite,
  program,
  resync,
  stackOf,
  succeeded,
  viewOf,
  type Setting,
} from "../../testing/views.ts";
import type { StackView, UpdateFacts } from "../../view.ts";
import { planStack } from "../index.ts";

const hourly = { driftDetection: { intervalSeconds: 3600 } };
const correct = { driftDetection: { intervalSeconds: 3600, action: "Correct" as const } };

const urn = "urn:pulumi:dev::demo::kubernetes:core/v1:ConfigMap::settings";
const found = { resources: [{ urn, operation: "update", properties: ["data.mode"] }] };
const summary = "kubernetes:core/v1:ConfigMap settings (data.mode)";

const checked = (secondsAgo: number, more: Partial<StackDrift> = {}): StackDrift => ({
  checkedAt: ago(secondsAgo),
  updateName: "web-check-before",
  resources: [],
  ...more,
});
const drifted = (secondsAgo: number, more: Partial<StackDrift> = {}): StackDrift =>
  checked(secondsAgo, { ...found, summary, ...more });

const aCheck = (changes: Partial<UpdateFacts> = {}): UpdateFacts =>
  anUpdate({
    name: "web-check",
    type: "refresh",
    isDriftCheck: true,
    startedAt: now - 30_000,
    trigger: aTrigger({ type: "refresh" }),
    ...changes,
  });
const finished = (changes: Partial<UpdateFacts> = {}): UpdateFacts =>
  aCheck({ state: "succeeded", endedAt: now, drift: { resources: [] }, ...changes });

/** An update an hour and a minute ago, with drift detection. */
const due: Setting = { spec: hourly, last: succeeded({ lastResyncTime: ago(3660) }) };

cases("a drift check is due", [
  ["an interval after the first update", due, "create refresh for drift: Ready"],
  [
    "an interval after the last check",
    { ...due, last: succeeded({ lastResyncTime: ago(60) }), drift: checked(3600) },
    "create refresh for drift: Ready",
  ],
  ["on request, without a schedule", { last: succeeded(), driftRequest: "a" }, "create refresh for drift: Ready"],
  [
    "on another request, before the interval has passed",
    { ...due, drift: checked(10, { request: "a" }), driftRequest: "b" },
    "create refresh for drift: Ready",
  ],
  [
    "before the Workspace is deleted",
    { ...due, spec: { ...hourly, workspaceReclaimPolicy: "Delete" } },
    "create refresh for drift: Ready",
  ],
  [
    "even if other Stacks have to be deployed first, since it changes nothing",
    { ...due, prerequisites: [prerequisite({ last: "failed" })] },
    "create refresh for drift: Ready",
  ],
]);

cases("no drift check is due", [
  ["without a schedule or a request", { last: succeeded() }, "none: Ready"],
  ["before the interval has passed", { ...due, drift: checked(3599) }, "none: Ready"],
  [
    "for a request that was handled",
    { last: succeeded(), drift: checked(1, { request: "a" }), driftRequest: "a" },
    "none: Ready",
  ],
  ["before anything was deployed", { ...due, status: { deployed: false } }, "none: Ready"],
  [
    "if only previews have run, according to the Go operator",
    { ...due, last: succeeded({ type: "preview", lastResyncTime: ago(3660) }) },
    "none: Ready",
  ],
  ["while an update is due", { ...due, source: program(2) }, "create up for revision: StackProcessing"],
  ["while a failed update is retried", { ...due, last: failed({ failures: 2 }) }, "none: RetryingAfterFailure"],
  ["while the Stack is being deleted", { ...due, deleting: true }, "removeFinalizer: unchanged"],
  [
    "right after a failed check: it is retried later each time",
    { ...due, drift: checked(3600 * 3, { failures: 3 }) },
    "none: Ready",
  ],
]);

cases("a drift check uses the Workspace", [
  ["which is applied if it is absent", { ...due, workspace: "absent" }, "applyWorkspace: Ready"],
  ["which is applied if it differs", { ...due, workspace: "other" }, "applyWorkspace: Ready"],
  ["and waits while it is prepared", { ...due, workspace: "preparing" }, "none: Ready"],
  ["after the inputs were checked", { ...due, missing: "unchecked" }, "checkInputs: unchanged"],
  ["and fails if an input is missing", { ...due, missing: ["there is no Secret a"] }, "recordDrift: Ready"],
  ["and fails if it cannot be prepared", { ...due, workspace: { failed: "InstallationFailed" } }, "recordDrift: Ready"],
  ["and fails if it has another owner", { ...due, workspace: "foreign" }, "recordDrift: Ready"],
]);

cases("a running drift check", [
  ["leaves the Stack ready", { ...due, updates: [aCheck()] }, "none: Ready"],
  [
    "leaves the status alone while the source is being read",
    { ...due, source: { kind: "pending", what: "x" }, updates: [aCheck()] },
    "none: unchanged",
  ],
  [
    "is stopped if an update is due",
    { ...due, source: program(2), updates: [aCheck()] },
    "withdrawUpdate: StackProcessing",
  ],
  ["is stopped once", { ...due, source: program(2), updates: [aCheck({ deleting: true })] }, "none: StackProcessing"],
  [
    "is stopped if the Stack is deleted",
    { ...due, deleting: true, updates: [aCheck()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is stopped if the spec is invalid",
    { ...due, spec: { ...hourly, stack: "" }, updates: [aCheck()] },
    "withdrawUpdate: StackProcessing",
  ],
  ["is stopped if a user cancels it", { ...due, cancelled: "web-check", updates: [aCheck()] }, "withdrawUpdate: Ready"],
  [
    "is reported if its node may be lost",
    { ...due, updates: [aCheck({ stall: { reason: "NodeLost", message: "The node is lost." } })] },
    "none: NodeLost",
  ],
]);

const { startedAt: _, ...waiting } = aCheck();

cases("a drift check of a Stack that is suspended", [
  [
    "is withdrawn if it has not started",
    { ...due, spec: { ...hourly, suspend: true }, updates: [waiting] },
    "withdrawUpdate: Ready",
  ],
  ["finishes if it has started", { ...due, spec: { ...hourly, suspend: true }, updates: [aCheck()] }, "none: Ready"],
]);

test("the message about a check that is stopped shows why", () => {
  const stopped = (setting: Setting): string => messageFor({ ...due, ...setting, updates: [aCheck()] });
  const text = "The drift check web-check is being stopped, because";
  expect(stopped({ deleting: true })).toBe(`${text} the Stack is being deleted.`);
  expect(stopped({ spec: { ...hourly, stack: "" } })).toBe(`${text} the spec is invalid.`);
  expect(stopped({ source: program(2) })).toBe(`${text} an update is due.`);
});

cases("a drift check that waits for its Workspace", [
  ["waits while the Workspace is prepared", { ...due, workspace: "preparing", updates: [waiting] }, "none: Ready"],
  [
    "is stopped if the Workspace fails",
    { ...due, workspace: { failed: "InstallationFailed" }, updates: [waiting] },
    "withdrawUpdate: Ready",
  ],
  [
    "is stopped if the Workspace was deleted",
    { ...due, workspace: "absent", updates: [waiting] },
    "withdrawUpdate: Ready",
  ],
]);

const withdrawn = { state: "failed", failure: "withdrawn", deleting: true } as const;

cases("a finished drift check", [
  ["is recorded", { ...due, updates: [finished()] }, "recordDrift: Ready"],
  [
    "is recorded even if an update is due",
    { ...due, source: program(2), updates: [finished()] },
    "recordDrift: unchanged",
  ],
  [
    "is recorded even if it succeeded while it was stopped for an update",
    { ...due, source: program(2), updates: [finished({ deleting: true })] },
    "recordDrift: unchanged",
  ],
  [
    "loses its finalizer once it is recorded",
    { ...due, drift: checked(0, { updateName: "web-check" }), updates: [finished()] },
    "removeUpdateFinalizers, none: Ready",
  ],
  [
    "is not recorded if it was stopped for an update",
    { ...due, source: program(2), updates: [finished(withdrawn)] },
    "removeUpdateFinalizers, create up for revision: StackProcessing",
  ],
  ["is recorded as failed if a user stopped it", { ...due, updates: [finished(withdrawn)] }, "recordDrift: Ready"],
  ["is deleted if nobody wants its result", { last: succeeded(), updates: [finished()] }, "withdrawUpdate: unchanged"],
  [
    "does not keep a deleted Stack",
    { ...due, deleting: true, updates: [finished()] },
    "removeUpdateFinalizers, removeFinalizer: unchanged",
  ],
  [
    "is never the last update, even if the status was lost",
    { spec: hourly, updates: [finished({ deleting: true })] },
    "removeUpdateFinalizers, create up for first: StackProcessing",
  ],
]);

cases("drift is corrected", [
  [
    "not again after a cancelled correction, although a clock that was hours ahead recorded the check",
    { spec: correct, last: failed({ lastResyncTime: ago(30) }), cancelled: "web-last", drift: drifted(-36_000) },
    "none: UpdateFailed",
  ],
  [
    "by an update, if that is wanted",
    { spec: correct, last: succeeded(), drift: drifted(60) },
    "create up for drift: StackProcessing",
  ],
  ["not if it is only reported", { spec: hourly, last: succeeded(), drift: drifted(60) }, "none: Ready"],
  ["not without drift", { spec: correct, last: succeeded(), drift: checked(60) }, "none: Ready"],
  [
    "not by a preview",
    {
      spec: { ...correct, preview: true },
      last: succeeded({ type: "preview" }),
      status: { deployed: true },
      drift: drifted(60),
    },
    "none: Ready",
  ],
  [
    "by an update, although a clock that was hours ahead recorded both the check and the last update",
    { spec: correct, last: succeeded({ lastResyncTime: ago(-36_000) }), drift: drifted(-36_000) },
    "create up for drift: StackProcessing",
  ],
  [
    "once for each check",
    { spec: correct, last: failed({ lastResyncTime: ago(30) }), cancelled: "web-last", drift: drifted(60) },
    "none: UpdateFailed",
  ],
  [
    "again after the next check",
    { spec: correct, last: succeeded({ lastResyncTime: ago(61) }), drift: drifted(60) },
    "create up for drift: StackProcessing",
  ],
]);

interface Pass {
  readonly status: StackStatus;
  readonly events: readonly string[];
  readonly drifted: string;
  readonly requeueAt: number | undefined;
}

function pass(setting: Setting, facts: Partial<StackView> = {}): Pass {
  const view = { ...viewOf(setting), ...facts };
  const plan = planStack(view);
  const status = stackStatus(view, plan);
  const {
    status: is = "absent",
    reason = "",
    message = "",
  } = findCondition({ ...view.stack, status }, "Drifted") ?? {};
  return {
    status,
    events: stackEventsFor(view, plan).map((event) => event.reason),
    drifted: `${is} ${reason}: ${message}`.trim(),
    requeueAt: plan.requeueAt,
  };
}

describe("the status after a check", () => {
  test("reports drift by resource and property, and Ready as before", () => {
    const { status, events, drifted: condition } = pass({ ...due, updates: [finished({ drift: found })] });
    expect(status.drift).toEqual({ checkedAt: ago(0), updateName: "web-check", ...found, summary });
    expect(condition).toStartWith(
      `True DriftDetected: 1 resource differs from the state: ${summary}. Nothing was changed`,
    );
    expect(status.conditions?.[0]).toMatchObject({ type: "Ready", status: "True" });
    expect(status.lastUpdate).toEqual(due.last as object);
    expect(events).toEqual(["StackDriftDetected"]);
  });

  test("reports the same drift without another event, and other drift with one", () => {
    const again = { ...due, drift: drifted(3600), updates: [finished({ drift: found })] };
    expect(pass(again).events).toEqual([]);
    const other = { resources: [{ urn, operation: "delete" }] };
    expect(pass({ ...again, updates: [finished({ drift: other })] }).events).toEqual(["StackDriftDetected"]);
  });

  test("reports that there is none, and an event if there was", () => {
    const clean = { ...due, updates: [finished()] };
    expect(pass(clean)).toMatchObject({ drifted: "False NoDrift: The resources match the state.", events: [] });
    expect(pass({ ...clean, drift: drifted(3600) }).events).toEqual(["StackDriftResolved"]);
  });

  test("reports a failure once, keeps what is known, and retries later", () => {
    const failure = finished({ state: "failed", message: "error: no such host" });
    const first = pass({ ...due, drift: drifted(3600), updates: [failure] });
    expect(first.drifted).toBe(
      `Unknown DriftCheckFailed: The drift check failed: error: no such host\nIt will be retried at ${timestamp(now + 3_600_000)}.`,
    );
    expect(first.events).toEqual(["StackDriftCheckFailed"]);
    expect(first.status.drift).toMatchObject({ ...found, failures: 1, updateName: "web-check" });
    const second = pass({ ...due, drift: drifted(3600, { failures: 1 }), updates: [failure] });
    expect(second.events).toEqual([]);
    expect(second.drifted).toContain(`retried at ${timestamp(now + 7_200_000)}.`);
  });

  test("reports a check that could not start", () => {
    const { status, drifted: condition, events } = pass({ ...due, workspace: { failed: "InstallationFailed" } });
    expect(condition).toStartWith("Unknown DriftCheckFailed: The drift check failed: Workspace web cannot be prepared");
    expect(status.drift).toEqual({ checkedAt: ago(0), resources: [], failures: 1 });
    expect(events).toEqual(["StackDriftCheckFailed"]);
    const rejection = { kind: "invalid", explanation: "exceeded quota" } as const;
    expect(pass(due, { rejection }).drifted).toContain("The drift check failed: exceeded quota");
    expect(pass(due, { rejection }).status.conditions?.[0]).toMatchObject({ type: "Ready", status: "True" });
  });

  test("says nothing about drift if the finalizer of a destroyed Stack cannot be removed", () => {
    const last = succeeded({ type: "destroy", lastResyncTime: ago(5) });
    const setting = { ...due, deleting: true, last, status: { deployed: true }, driftRequest: "now" };
    const { status } = pass(setting, { rejection: { kind: "denied", explanation: "no" } });
    expect(status.drift).toBeUndefined();
    expect(status.conditions?.[0]).toMatchObject({ type: "Ready", status: "False" });
  });

  test("records the request, and keeps it afterwards", () => {
    const { steps } = planStack(viewOf({ ...due, driftRequest: "now" }));
    expect(steps).toMatchObject([{ kind: "createUpdate", trigger: { type: "refresh", driftRequest: "now" } }]);
    const requested = finished({ trigger: aTrigger({ type: "refresh", driftRequest: "now" }) });
    expect(pass({ ...due, driftRequest: "now", updates: [requested] }).status.drift?.request).toBe("now");
    const periodic = { ...due, drift: checked(3600, { request: "now" }), updates: [finished()] };
    expect(pass(periodic).status.drift?.request).toBe("now");
  });

  test("has limits, and counts what does not fit", () => {
    const resources = Array.from({ length: 100 }, (_, index) => ({ urn: `${urn}${index}`, operation: "update" }));
    const { drift } = pass({ ...due, updates: [finished({ drift: { resources, omitted: 7 } })] }).status;
    expect([drift?.resources.length, drift?.omitted]).toEqual([20, 87]);
    const long = resources.map((each) => ({ urn: each.urn, operation: "update", properties: ["x".repeat(1000)] }));
    const { status } = pass({ ...due, updates: [finished({ drift: { resources: long } })] });
    expect(JSON.stringify(status.drift).length).toBeLessThan(12_000);
  });
});

describe("the status of a Stack", () => {
  test("shows a running check only as the current update", () => {
    const { status } = pass({ ...due, updates: [aCheck()] });
    expect(status.currentUpdate).toMatchObject({ name: "web-check" });
    expect(status.waiting).toBeUndefined();
    expect(pass(due).status.currentUpdate?.name).toStartWith("web-");
    expect(pass(due).events).toEqual([]);
  });

  test("shows the next check, unless a resync is next", () => {
    const setting = { ...due, drift: checked(600) };
    expect(pass(setting).status.next).toEqual({ what: "the drift check", time: timestamp(now + 3_000_000) });
    expect(pass(setting).requeueAt).toBe(now + 3_000_000);
    const both = { ...setting, spec: { ...hourly, ...resync(7200) } };
    expect(pass(both).status.next?.what).toBe("the periodic resync");
    expect(pass(both).requeueAt).toBe(now + 3_000_000);
  });

  test("keeps the result while an update runs, and forgets it without a schedule or a request", () => {
    const setting = { ...due, drift: drifted(60), updates: [anUpdate()] };
    expect(pass(setting)).toMatchObject({ drifted: "True DriftDetected: As before.", status: { drift: drifted(60) } });
    const { status, drifted: condition } = pass({ ...setting, spec: {} });
    expect([status.drift, condition]).toEqual([undefined, "absent :"]);
  });
});

describe("after an update", () => {
  const up = (changes: Partial<UpdateFacts>): Setting => ({
    ...due,
    spec: correct,
    drift: drifted(60),
    updates: [anUpdate({ name: "web-fix", state: "succeeded", endedAt: now, ...changes })],
  });

  test("that refreshed the state, there is no drift", () => {
    const { status, drifted: condition, events } = pass(up({ refreshes: true }));
    expect(condition).toBe("False NoDrift: Update web-fix refreshed the state, so that it matches the resources.");
    expect(status.drift).toEqual({
      ...checked(60),
      resources: [],
      corrected: { updateName: "web-fix", time: ago(0), summary },
    });
    expect(events).toEqual(["StackCreated", "StackDriftResolved"]);
  });

  test("that did not, or that failed, the drift that was found is still reported", () => {
    for (const changes of [{ refreshes: false }, { refreshes: true, state: "failed" as const }]) {
      expect(pass(up(changes)).drifted).toBe("True DriftDetected: As before.");
    }
  });

  test("the same drift is reported as such if the next check finds it again", () => {
    const corrected = { updateName: "web-fix", time: ago(3000), summary };
    const setting = { ...due, spec: correct, drift: checked(3600, { corrected }) };
    const { drifted: condition, status } = pass({ ...setting, updates: [finished({ drift: found })] });
    expect(condition).toContain(
      `Update web-fix corrected the same drift at ${ago(3000)}. Something else keeps changing`,
    );
    expect(status.drift?.corrected).toEqual(corrected);
    expect(pass({ ...setting, updates: [finished()] }).status.drift?.corrected).toBeUndefined();
  });
});

test("each check has a name of its own", () => {
  const trigger = aTrigger({ type: "refresh" });
  const names = [
    updateNameFor(stackOf(due), trigger),
    updateNameFor(stackOf({ ...due, drift: checked(10) }), trigger),
    updateNameFor(stackOf({ ...due, drift: checked(5) }), trigger),
    updateNameFor(stackOf(due), { ...trigger, driftRequest: "a" }),
    updateNameFor(stackOf(due), aTrigger()),
  ];
  expect(new Set(names).size).toBe(names.length);
});
