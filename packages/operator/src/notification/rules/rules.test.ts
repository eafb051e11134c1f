import { describe, expect, test } from "bun:test";
import type { NotificationSpec } from "@pko/api";

import { jittered } from "../../shared/pauses.ts";
import { notificationEventsFor } from "../events.ts";
import { remember, retryIn } from "../memory.ts";
import type { Inbox } from "../occurrences/inboxes.ts";
import { maxAgeMs } from "../occurrences/occurrence.ts";
import type { News, State } from "../outcome.ts";
import { notificationStatus } from "../status.ts";
import { notification, now, occurrenceAt, started, viewOf } from "../testing/views.ts";
import type { NotificationView } from "../view.ts";
import { planNotification } from "./index.ts";

const failure = occurrenceAt(now - 5000);
const inboxOf = (changes: Partial<Inbox> = {}): Inbox => ({
  pending: [failure],
  waitedMs: 30_000,
  overflow: [],
  ...changes,
});
const withSpec = (spec: Partial<NotificationSpec>, inbox = inboxOf()): Partial<NotificationView> => ({
  notification: notification(spec, started),
  inbox,
});
const retry = { failures: 1, at: now + 60_000, cause: "hooks.example.com failed (status 500)" };
const ended = (sent: Extract<NotificationView["delivery"], { kind: "ended" }>["sent"]) =>
  ({ kind: "ended", sent, occurrences: [failure] }) as const;
const rejected = { result: "rejected", message: "hooks.example.com rejected it (status 403)" } as const;

interface Expected {
  readonly state: State["kind"];
  readonly news?: News["kind"];
  readonly sent?: number;
  readonly requeueIn?: number;
}

const cases: readonly (readonly [string, Partial<NotificationView>, Expected])[] = [
  ["a new Notification starts from now", { notification: notification() }, { state: "delivering", news: "started" }],
  [
    "a new Notification without its Secret is never ready",
    { notification: notification(), target: { kind: "secretMissing" } },
    { state: "stalled", news: "started" },
  ],
  ["nothing happened: it waits", {}, { state: "delivering" }],
  [
    "something happened: it collects",
    { inbox: inboxOf({ waitedMs: 1000 }) },
    { state: "delivering", requeueIn: 29_000 },
  ],
  ["the time is over: it sends", { inbox: inboxOf() }, { state: "delivering", sent: 1 }],
  ["groupSeconds is respected", withSpec({ groupSeconds: 60 }), { state: "delivering", requeueIn: 30_000 }],
  [
    "groupSeconds 0 sends at once",
    withSpec({ groupSeconds: 0 }, inboxOf({ waitedMs: 0 })),
    { state: "delivering", sent: 1 },
  ],
  ["a message is on its way: it waits", { inbox: inboxOf(), delivery: { kind: "sending" } }, { state: "delivering" }],
  [
    "a message was delivered",
    { inbox: inboxOf(), delivery: ended({ result: "delivered" }) },
    { state: "delivering", news: "delivered" },
  ],
  [
    "a message was not delivered",
    { inbox: inboxOf(), delivery: ended(rejected) },
    { state: "failing", news: "failed", requeueIn: jittered(5000, "uid-1") },
  ],
  [
    "pauses grow",
    { inbox: inboxOf(), delivery: ended(rejected), retry: { ...retry, failures: 4 } },
    { state: "failing", news: "failed", requeueIn: jittered(80_000, "uid-1") },
  ],
  [
    "pauses are at most ten minutes",
    { inbox: inboxOf(), delivery: ended(rejected), retry: { ...retry, failures: 40 } },
    { state: "failing", news: "failed", requeueIn: jittered(600_000, "uid-1") },
  ],
  [
    "Retry-After is respected",
    { inbox: inboxOf(), delivery: ended({ ...rejected, result: "rateLimited", retryAfterMs: 120_000 }) },
    { state: "failing", news: "failed", requeueIn: 120_000 },
  ],
  [
    "Retry-After is limited",
    { inbox: inboxOf(), delivery: ended({ ...rejected, result: "rateLimited", retryAfterMs: 1e12 }) },
    { state: "failing", news: "failed", requeueIn: maxAgeMs },
  ],
  ["it waits before it tries again", { inbox: inboxOf(), retry }, { state: "failing", requeueIn: 60_000 }],
  [
    "it does not wait longer than events are kept",
    { inbox: inboxOf(), retry: { ...retry, at: now + 2 * maxAgeMs } },
    { state: "failing", requeueIn: maxAgeMs - 5000 + 1 },
  ],
  ["it tries again", { inbox: inboxOf(), retry: { ...retry, at: now } }, { state: "failing", sent: 1 }],
  [
    "it does not collect again before it tries again",
    { inbox: inboxOf({ waitedMs: 0 }), retry: { ...retry, at: now } },
    { state: "failing", sent: 1 },
  ],
  ["a failure stays visible without news", { retry }, { state: "failing" }],
  [
    "old events are dropped",
    { inbox: inboxOf({ pending: [occurrenceAt(now - maxAgeMs - 1), failure] }), retry },
    { state: "failing", news: "dropped" },
  ],
  [
    "events are kept until they are too old",
    { inbox: inboxOf({ pending: [occurrenceAt(now - maxAgeMs), failure] }), retry },
    { state: "failing", requeueIn: 1 },
  ],
  [
    "too many events are dropped",
    { inbox: inboxOf({ overflow: [failure] }) },
    { state: "delivering", news: "dropped" },
  ],
  ["a suspended Notification sends nothing", withSpec({ suspend: true }), { state: "suspended" }],
  [
    "a suspended Notification ignores the result of a delivery",
    { ...withSpec({ suspend: true }), delivery: ended({ result: "delivered" }) },
    { state: "suspended" },
  ],
  [
    "without a Secret, it waits until events are too old",
    { inbox: inboxOf(), target: { kind: "secretMissing" } },
    { state: "stalled", requeueIn: maxAgeMs - 5000 + 1 },
  ],
];
test.each(cases)("%s", (...row) => {
  const [, changes, expected] = row;
  const { steps, outcome, requeueAt } = planNotification(viewOf(changes));
  expect({
    state: outcome.state.kind,
    news: outcome.news.kind,
    sent: steps.map(({ occurrences }) => occurrences.length),
  }).toEqual({
    state: expected.state,
    news: expected.news ?? "none",
    sent: expected.sent === undefined ? [] : [expected.sent],
  });
  expect(requeueAt).toBe(expected.requeueIn === undefined ? undefined : now + expected.requeueIn);
});

test("a server that asks for a pause gets all of it, whatever the jitter", () => {
  for (const uid of ["a", "b", "c", "d"]) {
    const object = notification({}, started);
    const delivery = ended({ ...rejected, result: "rateLimited", retryAfterMs: 120_000 });
    const view = viewOf({ notification: { ...object, metadata: { ...object.metadata, uid } }, delivery });
    expect(planNotification(view).requeueAt).toBe(now + 120_000);
  }
});

test("what a CloudEvents batch does not have room for is sent with the next", () => {
  const pending = Array.from({ length: 1500 }, (_, index) => occurrenceAt(now - 5000, { stack: `web-${index}` }));
  const sent = (type: NotificationSpec["type"]) =>
    planNotification(viewOf(withSpec({ type }, inboxOf({ pending })))).steps[0]?.occurrences.length;
  expect([sent("CloudEvents"), sent("Slack"), sent("Teams")]).toEqual([1000, 1500, 1500]);
});

describe("the status", () => {
  const statusOf = (view: NotificationView) => notificationStatus(view, planNotification(view));

  test.each([
    ["secretMissing", "SecretMissing", "Secret chat does not exist"],
    ["secretForbidden", "SecretMissing", "may not read Secret chat"],
    ["urlMissing", "SecretMissing", "Secret chat has no key url"],
    ["urlInvalid", "TargetInvalid", "the URL is not valid"],
    ["tokenInvalid", "TargetInvalid", "key token of Secret chat"],
    ["caInvalid", "TargetInvalid", "key caCert of Secret chat"],
  ] as const)("explains %s", (kind, reason, message) => {
    const { conditions = [] } = statusOf(viewOf({ target: { kind } }));
    expect(conditions.map(({ type, status }) => `${type} ${status}`)).toEqual(["Ready False", "Stalled True"]);
    expect(conditions[1]).toMatchObject({ reason });
    expect(conditions[1]?.message).toContain(message);
  });

  test("counts what was delivered and dropped, and keeps the rest", () => {
    const before = {
      ...started,
      delivered: 2,
      dropped: 3,
      lastFailure: { time: "2030-01-01T11:30:00Z", message: "x" },
    };
    const view = viewOf({ notification: notification({}, before), inbox: inboxOf() });
    const delivered = statusOf({ ...view, delivery: ended({ result: "delivered" }) });
    expect(delivered).toMatchObject({ delivered: 3, dropped: 3, lastFailure: before.lastFailure });
    expect(delivered.lastDelivery).toEqual({ time: "2030-01-01T12:00:00Z", events: 1 });
    const lost = statusOf({ ...view, inbox: inboxOf({ overflow: [occurrenceAt(now)] }) });
    expect(lost).toMatchObject({ delivered: 2, dropped: 4 });
    expect(lost.cursor).not.toEqual(started.cursor ?? { time: "" });
  });

  test("remembers destroyed Stacks until they are reported, because their objects are deleted", () => {
    const destroyed = occurrenceAt(now - 5000, { kind: "Destroyed" });
    const view = viewOf({ inbox: inboxOf({ pending: [destroyed, failure] }) });
    expect(statusOf(view).unsent?.map(({ id }) => id)).toEqual([destroyed.id]);
    const sent = { kind: "ended", sent: { result: "delivered" }, occurrences: [destroyed] } as const;
    expect(statusOf({ ...view, delivery: sent })).not.toHaveProperty("unsent");
  });

  test("a cursor that was recorded while the clock was wrong is corrected", () => {
    const cursorAt = (time: string) =>
      statusOf(viewOf({ notification: notification({}, { cursor: { time } }) })).cursor;
    expect(cursorAt("2030-01-02T12:00:00Z")).toEqual({ time: "2030-01-01T11:55:00Z" });
    // The clocks of two replicas may differ.
    expect(cursorAt("2030-01-01T12:01:00Z")).toEqual({ time: "2030-01-01T12:01:00Z" });
  });

  test("a Notification that is resumed starts from now", () => {
    const suspended = statusOf(viewOf({ notification: notification({ suspend: true }, started) }));
    expect(suspended.conditions).toMatchObject([{ type: "Ready", status: "False", reason: "NotificationSuspended" }]);
    const resumed = statusOf(viewOf({ notification: notification({}, suspended) }));
    expect(resumed.cursor).toEqual({ time: "2030-01-01T12:00:00Z" });
    expect(resumed.conditions).toMatchObject([{ status: "True", reason: "Delivering" }]);
  });
});

describe("failures", () => {
  const failed = viewOf({ inbox: inboxOf(), delivery: ended(rejected) });
  const moment = { now, monotonic: 1000, signal: new AbortController().signal };

  test("are reported with an event once", () => {
    expect(notificationEventsFor(failed, planNotification(failed))).toMatchObject([
      { type: "Warning", reason: "DeliveryFailed" },
    ]);
    const again = { ...failed, retry };
    expect(notificationEventsFor(again, planNotification(again))).toEqual([]);
    const dropped = viewOf({ inbox: inboxOf({ overflow: [failure] }) });
    expect(notificationEventsFor(dropped, planNotification(dropped))).toMatchObject([
      { reason: "NotificationsDropped" },
    ]);
  });

  test("are remembered until a delivery succeeds or the target changes", () => {
    const memory = remember(failed, planNotification(failed), { ...moment, memory: undefined });
    const known = retryIn({ ...moment, memory }, "uid-1 2 ");
    expect(known).toMatchObject({ failures: 1, cause: rejected.message });
    expect(retryIn({ ...moment, memory }, "uid-1 3 ")).toBeUndefined();
    expect(retryIn({ ...moment, memory }, "uid-2 2 ")).toBeUndefined();
    const waiting = viewOf({ inbox: inboxOf(), retry });
    expect(remember(waiting, planNotification(waiting), { ...moment, memory })).toBe(
      memory as NonNullable<typeof memory>,
    );
    const delivered = viewOf({ inbox: inboxOf(), retry, delivery: ended({ result: "delivered" }) });
    expect(remember(delivered, planNotification(delivered), { ...moment, memory })).toBeUndefined();
  });
});
