import { describe, expect, test } from "bun:test";

import { ignoreWindowsUntilAnnotation } from "@pko/api";

import { stackStatus } from "../status.ts";
import {
  ago,
  anUpdate,
  aTrigger,
  cases,
  creating,
  failed,
  messageFor,
  now,
  prerequisite,
  program,
  resync,
  succeeded,
  viewOf,
  type Setting,
} from "../testing/views.ts";
import { planStack } from "./index.ts";

/** It is noon on a Tuesday. */
const closed = [{ schedule: "0 22 * * *", durationSeconds: 7200, timeZone: "Europe/Berlin" }];
const open = [{ schedule: "0 11 * * *", durationSeconds: 7200 }];
const opening = Date.UTC(2030, 0, 1, 21);
const night = { spec: { updateWindows: closed } } as const;
const ignored = (until: string) => ({ annotations: { [ignoreWindowsUntilAnnotation]: until } });
const destroy = { deleting: true, last: succeeded() } as const;

cases("outside of update windows waits", [
  ["the first update", night, "none: OutsideUpdateWindow"],
  ["an update for a changed spec", { ...night, last: succeeded(), generation: 2 }, "none: OutsideUpdateWindow"],
  ["an update for a new revision", { ...night, last: succeeded(), source: program(2) }, "none: OutsideUpdateWindow"],
  ["a requested update", { ...night, last: succeeded(), request: "now" }, "none: OutsideUpdateWindow"],
  ["a preview", { spec: { updateWindows: closed, preview: true } }, "none: OutsideUpdateWindow"],
  ["a retry", { ...night, last: failed({ lastResyncTime: ago(3600) }) }, "none: OutsideUpdateWindow"],
  [
    "a resync",
    { spec: { updateWindows: closed, ...resync(60) }, last: succeeded({ lastResyncTime: ago(3600) }) },
    "none: OutsideUpdateWindow",
  ],
  ["a destroy", { ...destroy, spec: { updateWindows: closed, destroyOnFinalize: true } }, "none: OutsideUpdateWindow"],
  [
    "an update whose prerequisites are not met",
    { ...night, prerequisites: [prerequisite({ last: "failed" })] },
    "none: OutsideUpdateWindow",
  ],
  ["an update whose override has expired", { ...night, ...ignored(ago(1)) }, "none: OutsideUpdateWindow"],
  ["an update whose override expires now", { ...night, ...ignored(ago(0)) }, "none: OutsideUpdateWindow"],
  ["an update whose override is invalid", { ...night, ...ignored("tomorrow") }, "none: OutsideUpdateWindow"],
  ["an update whose override has no time zone", { ...night, ...ignored("2031-01-01") }, "none: OutsideUpdateWindow"],
]);

cases("outside of update windows, the Stack", [
  ["is Ready if nothing is due", { ...night, last: succeeded() }, "none: Ready"],
  ["is removed without a destroy", { ...destroy, ...night }, "removeFinalizer: unchanged"],
  ["waits for a running update", { ...night, updates: [anUpdate({ startedAt: now })] }, "none: StackProcessing"],
  ["withdraws an update that has not started", { ...night, updates: [anUpdate()] }, "withdrawUpdate: StackProcessing"],
  [
    "waits for a drift check that has not started",
    { ...night, updates: [anUpdate({ type: "refresh", trigger: aTrigger({ type: "refresh" }) })] },
    "none: StackProcessing",
  ],
]);

cases("an update starts", [
  ["in a window", { spec: { updateWindows: open } }, creating("up for first")],
  ["if one of several windows is open", { spec: { updateWindows: [...closed, ...open] } }, creating("up for first")],
  ["while the windows are ignored", { ...night, ...ignored("2030-01-01T12:00:01Z") }, creating("up for first")],
  [
    "while the windows are ignored until a time in another zone",
    { ...night, ...ignored("2030-01-01T14:00:00+01:00") },
    creating("up for first"),
  ],
  ["without windows", { spec: { updateWindows: [] } }, creating("up for first")],
]);

const plan = (setting: Setting) => planStack(viewOf(setting));
const next = (setting: Setting) => stackStatus(viewOf(setting), plan(setting)).next;

test("the Stack is requeued when a window opens, and its status shows what starts then", () => {
  expect(plan(night).requeueAt).toBe(opening);
  expect(next(night)).toEqual({ what: "the up for the first update", time: "2030-01-01T21:00:00Z" });
});

test("a retry and a resync outside of the windows are announced for the next opening", () => {
  const retried: Setting = { ...night, last: failed() };
  expect([plan(retried).requeueAt, next(retried)?.time]).toEqual([opening, "2030-01-01T21:00:00Z"]);
  expect(messageFor(retried)).toEndWith("It will be retried at 2030-01-01T21:00:00Z.");
  const resynced: Setting = { spec: { updateWindows: closed, ...resync(7200) }, last: succeeded() };
  expect([plan(resynced).requeueAt, next(resynced)?.time]).toEqual([opening, "2030-01-01T21:00:00Z"]);
  const ends: Setting = { ...resynced, updates: [anUpdate({ state: "succeeded", endedAt: now })] };
  expect(next(ends)?.time).toBe("2030-01-01T21:00:00Z");
});

test("an update that has not started is checked again when the window closes", () => {
  const spec = { updateWindows: open };
  const closing = Date.UTC(2030, 0, 1, 13);
  expect(plan({ spec, updates: [anUpdate()] }).requeueAt).toBe(closing);
  expect(plan({ spec, updates: [anUpdate()], workspace: { failed: "InstallationFailed" } }).requeueAt).toBe(closing);
  expect(plan({ spec, updates: [anUpdate({ startedAt: now })] }).requeueAt).toBeUndefined();
  expect(plan({ updates: [anUpdate()] }).requeueAt).toBeUndefined();
});

describe("the message outside of update windows", () => {
  test("names what is due, the opening in both zones, and the annotation", () => {
    expect(messageFor({ ...night, last: succeeded(), source: program(2) })).toBe(
      "The up for the new revision 2 is due, but no update window is open. The next one opens at 2030-01-01T21:00:00Z (2030-01-01 22:00 in Europe/Berlin). To start it earlier, set the annotation pulumi.com/ignore-update-windows-until of the Stack to a time until which update windows are ignored, such as 2030-01-31T18:00:00Z.",
    );
  });

  test("shows the opening once in UTC", () => {
    const spec = { updateWindows: [{ schedule: "0 22 * * *", durationSeconds: 60 }] };
    expect(messageFor({ spec })).toContain("The next one opens at 2030-01-01T22:00:00Z. To start");
  });

  test("names an invalid override", () => {
    const text =
      'The value "tomorrow" of the annotation pulumi.com/ignore-update-windows-until is ignored: set it to a time';
    expect(messageFor({ ...night, ...ignored("tomorrow") })).toContain(text);
  });

  test("treats an empty override like none", () => {
    expect(messageFor({ ...night, ...ignored("") })).toBe(messageFor(night));
  });
});
