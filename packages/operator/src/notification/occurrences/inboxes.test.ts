import { expect, test } from "bun:test";
import type { Condition, Notification, NotificationSpec, NotificationStatus, Stack, Update } from "@pko/api";
import { keyOf, manualClock, timestamp, type KubeObject, type Store } from "@pko/kube";

import { workspaceKeyOf } from "../../shared/updates.ts";
import { notification, occurrenceAt } from "../testing/views.ts";
import { advance } from "./cursor.ts";
import { occurrencesOfUpdate } from "./derive.ts";
import { Inboxes, maxPending } from "./inboxes.ts";
import { maxAgeMs } from "./occurrence.ts";
import { toRecord } from "./unsent.ts";

/** Only what inboxes read. */
function storeOf<T extends KubeObject>(objects: readonly T[]): Store<T> {
  const list = () => [...objects];
  const byIndex = (_: string, key: string) =>
    objects.filter((each) => each.kind === "Update" && workspaceKeyOf(each as unknown as Update) === key);
  const get = (key: string) => objects.find((each) => keyOf(each) === key);
  return { get, list, byIndex, activeByIndex: () => [] } as unknown as Store<T>;
}

const condition = (type: string, reason: string, at: number): Condition => ({
  type,
  status: "True",
  reason,
  message: "",
  lastTransitionTime: timestamp(at),
  observedGeneration: 1,
});

const failedUpdate = (name: string, at: number, namespace = "prod"): Update => ({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  metadata: { name, namespace, uid: `uid of ${name}` },
  spec: { workspaceName: "web", type: "up" },
  status: {
    startTime: timestamp(at),
    conditions: [condition("Complete", "UpdateFailed", at), condition("Failed", "UpdateFailed", at)],
  },
});

function world({ stacks = [], updates = [] }: { stacks?: readonly Stack[]; updates?: readonly Update[] } = {}) {
  const clock = manualClock();
  const inboxes = new Inboxes({ stacks: storeOf(stacks), updates: storeOf(updates) }, clock);
  const status: NotificationStatus = { cursor: { time: timestamp(clock.now() - 60_000) } };
  const chat = (spec: Partial<NotificationSpec> = {}, more: NotificationStatus = {}): Notification =>
    notification(spec, { ...status, ...more });
  const happens = (update: Update) => inboxes.ofUpdate({ key: keyOf(update), after: update });
  const pending = (of: Notification = chat()) => inboxes.read(of).pending.map(({ update }) => update);
  return { clock, inboxes, chat, happens, pending };
}

test("changes of the namespace are collected and wake the Notification, once each", () => {
  const { clock, chat, happens, pending, inboxes } = world();
  expect(pending()).toEqual([]);
  const update = failedUpdate("one", clock.now());
  expect(happens(update)).toEqual([keyOf(chat())]);
  expect(happens(update)).toEqual([]);
  expect(inboxes.ofUpdate({ key: keyOf(update), before: update, after: update })).toEqual([]);
  expect(happens(failedUpdate("elsewhere", clock.now(), "other"))).toEqual([]);
  expect(inboxes.ofUpdate({ key: keyOf(update), before: update })).toEqual([]);
  expect(pending()).toEqual(["one"]);
});

test("nothing is collected for a Notification that is suspended", () => {
  const { clock, inboxes, chat, happens } = world();
  expect(inboxes.read(chat({ suspend: true })).pending).toEqual([]);
  expect(happens(failedUpdate("one", clock.now()))).toEqual([]);
});

test("a new Notification begins with its first pass, before its status shows a cursor", () => {
  const { clock, inboxes, chat, happens, pending } = world();
  expect(inboxes.read(notification()).pending).toEqual([]);
  expect(happens(failedUpdate("before", clock.now() - 1000))).toEqual([]);
  expect(happens(failedUpdate("one", clock.now()))).toEqual([keyOf(chat())]);
  expect(pending()).toEqual(["one"]);
});

test("what the cursor has passed, what the filter excludes, and what is too old are not collected", () => {
  const { clock, chat, happens, inboxes } = world();
  inboxes.read(chat({ filter: { stacks: ["api"] } }));
  expect(happens(failedUpdate("filtered", clock.now()))).toEqual([]);
  inboxes.read(chat());
  expect(happens(failedUpdate("before", clock.now() - 120_000))).toEqual([]);
  inboxes.read(chat({}, { cursor: { time: timestamp(0) } }));
  expect(happens(failedUpdate("old", clock.now() - maxAgeMs - 1000))).toEqual([]);
});

test("what is done leaves the inbox, also if it is reported again", () => {
  const { clock, chat, happens, pending } = world();
  pending();
  const [one, two] = [failedUpdate("one", clock.now()), failedUpdate("two", clock.now())];
  for (const each of [one, two]) happens(each);
  const cursor = advance(chat().status?.cursor ?? { time: "" }, occurrencesOfUpdate(one), occurrencesOfUpdate(two));
  expect(pending(chat({}, { cursor }))).toEqual(["two"]);
  expect(happens(one)).toEqual([]);
});

test("the time of the first is measured, whatever comes later", async () => {
  const { clock, chat, happens, inboxes } = world();
  inboxes.read(chat());
  happens(failedUpdate("one", clock.now()));
  await clock.advance(10_000);
  happens(failedUpdate("two", clock.now()));
  expect(inboxes.read(chat()).waitedMs).toBe(10_000);
});

test("after a restart, everything after the cursor is read from the stores and the status", () => {
  const { clock } = world();
  const at = clock.now();
  const stack: Stack = {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name: "web", namespace: "prod", uid: "uid of web" },
    spec: { stack: "dev" },
    status: {
      lastUpdate: { name: "two", lastResyncTime: timestamp(at) },
      conditions: [condition("Stalled", "SpecInvalid", at)],
    },
  };
  const elsewhere: Stack = { ...stack, metadata: { ...stack.metadata, namespace: "other", uid: "uid of another" } };
  const updates = [failedUpdate("before", at - 120_000), failedUpdate("one", at), failedUpdate("two", at)];
  const { inboxes, chat } = world({ stacks: [stack, elsewhere], updates });
  const unsent = toRecord([occurrenceAt(at, { kind: "Destroyed", stack: "old", update: "old-destroy" })]);
  const { pending } = inboxes.read(chat({}, { unsent }));
  expect(pending.map(({ kind, update = "" }) => `${kind} ${update}`).toSorted()).toEqual([
    "Destroyed old-destroy",
    "Stalled ",
    "UpdateFailed one",
    "UpdateFailed two",
  ]);
});

test("what does not fit is reported as such, until it is recorded", () => {
  const { clock, chat, happens, inboxes } = world();
  inboxes.read(chat());
  for (let index = 0; index <= maxPending; index++) happens(failedUpdate(`update-${index}`, clock.now()));
  const { pending, overflow } = inboxes.read(chat());
  expect([pending.length, overflow.map(({ update }) => update)]).toEqual([maxPending, ["update-0"]]);
  const cursor = advance(chat().status?.cursor ?? { time: "" }, overflow, pending);
  expect(inboxes.read(chat({}, { cursor })).overflow).toEqual([]);
});

test("a cursor that was recorded while the clock was wrong hides nothing", () => {
  const { clock, chat, happens, pending } = world();
  const ahead = chat({}, { cursor: { time: timestamp(clock.now() + 86_400_000) } });
  expect(pending(ahead)).toEqual([]);
  happens(failedUpdate("one", clock.now()));
  expect(pending(ahead)).toEqual(["one"]);
});

const named = (name: string, stacks: string[]): Notification => {
  const chat = notification({ filter: { stacks } });
  return { ...chat, metadata: { ...chat.metadata, name } };
};
const longNamed = (name: string, at: number): Update => ({
  ...failedUpdate(name, at),
  spec: { workspaceName: "a".repeat(253), type: "up" },
});

test("all Notifications of a namespace share the time to match one event; the rest is left to their passes", () => {
  const { clock, happens, inboxes } = world();
  const slow = Array.from({ length: 100 }, (_, index) => `${"*a".repeat(120)}[!a]${index}?`);
  for (let index = 0; index < 100; index++) inboxes.read(named(`slow-${index}`, slow));
  // Without a limit for all of them, each takes some 10 ms.
  expect(happens(longNamed("one", clock.now()))).toHaveLength(100);
  expect(happens(longNamed("two", clock.now()))).toHaveLength(100);
  expect(inboxes.read(named("slow-99", slow)).pending).toEqual([]);
});

test("ordinary filters of many Notifications select exactly, for any number of events", () => {
  const { clock, happens, inboxes } = world();
  for (let index = 0; index < 200; index++) inboxes.read(named(`chat-${index}`, ["*b", "b*", "*c*", "{x,y}*", "!*a"]));
  for (let index = 0; index < 50; index++) expect(happens(longNamed(`${index}`, clock.now()))).toEqual([]);
});

test("a changed filter applies from the next pass on, also if the Notification was created again", () => {
  const { clock, chat, happens, inboxes } = world();
  const read = (stacks: string[], metadata: Partial<Notification["metadata"]>): void => {
    const changed = chat({ filter: { stacks } });
    inboxes.read({ ...changed, metadata: { ...changed.metadata, ...metadata } });
  };
  read(["api"], { generation: 1 });
  expect(happens(failedUpdate("one", clock.now()))).toEqual([]);
  read(["web"], { generation: 2 });
  expect(happens(failedUpdate("two", clock.now()))).toHaveLength(1);
  read(["api"], { generation: 2, uid: "another" });
  expect(happens(failedUpdate("three", clock.now()))).toEqual([]);
});
