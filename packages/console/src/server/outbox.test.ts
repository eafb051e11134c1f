import { expect, test } from "bun:test";

import type { Change, StreamMessage } from "../shared/contract.ts";
import { Outbox } from "./outbox.ts";

const object = (uid: string, version: string, change: Change = "MODIFIED"): StreamMessage => ({
  id: "s",
  type: "object",
  change,
  object: { metadata: { uid, name: uid } },
  resourceVersion: version,
});

/** Everything that waits, shortened: `MODIFIED a@1`. */
function taken(outbox: Outbox): string[] {
  const all: string[] = [];
  for (let text = outbox.take(10); text !== undefined; text = outbox.take(10)) {
    const message = JSON.parse(text.replace(/^data: /, "")) as StreamMessage;
    const { metadata } = (message.type === "object" ? message.object : { metadata: {} }) as {
      metadata: { uid?: string };
    };
    all.push(
      message.type === "object" ? `${message.change} ${metadata.uid ?? ""}@${message.resourceVersion}` : message.type,
    );
  }
  return all;
}

test("of an object only the newest state waits, in the order of versions", () => {
  const outbox = new Outbox(1000);
  for (let version = 1; version <= 50; version++) outbox.push(object(version % 2 === 0 ? "a" : "b", String(version)));
  expect(taken(outbox)).toEqual(["MODIFIED b@49", "MODIFIED a@50"]);
});

test("an object that the page has not seen stays new until it is sent", () => {
  const outbox = new Outbox(1000);
  outbox.push(object("a", "1", "ADDED"));
  outbox.push(object("a", "2"));
  outbox.push(object("b", "3", "ADDED"));
  outbox.push(object("b", "4", "DELETED"));
  expect(taken(outbox)).toEqual(["ADDED a@2", "DELETED b@4"]);
});

test("the same object of two subscriptions, and a new object with an old name, are different", () => {
  const outbox = new Outbox(1000);
  outbox.push({ ...object("a", "1", "DELETED"), id: "x" });
  outbox.push({ ...object("a", "2"), id: "y" });
  outbox.push({ ...object("b", "3", "ADDED"), id: "x" });
  expect(taken(outbox)).toEqual(["DELETED a@1", "MODIFIED a@2", "ADDED b@3"]);
});

test("a reset drops what waits of its subscription", () => {
  const outbox = new Outbox(1000);
  outbox.push(object("a", "1"));
  outbox.push({ ...object("b", "1"), id: "other" });
  outbox.push({ id: "s", type: "reset" });
  outbox.push(object("a", "9", "ADDED"));
  expect(taken(outbox)).toEqual(["MODIFIED b@1", "reset", "ADDED a@9"]);
});

test("lines are kept, and fill it until they are taken", () => {
  const outbox = new Outbox(300);
  for (let at = 0; at < 20; at++) outbox.push({ id: "l", type: "line", text: `line ${at}` });
  expect(outbox.isFull).toBe(true);
  expect(taken(outbox)).toHaveLength(20);
  expect([outbox.isFull, outbox.isEmpty]).toEqual([false, true]);
});

test("an object that changes all the time does not fill it", () => {
  const outbox = new Outbox(2000);
  for (let version = 1; version <= 10_000; version++) outbox.push(object("a", String(version)));
  expect(outbox.isFull).toBe(false);
});

test("a line break in a text does not end an event", () => {
  const outbox = new Outbox(1000);
  outbox.push({ id: "l", type: "line", text: "a\n\ndata: {}\r\n" });
  expect(outbox.take(1000)?.split("\n")).toHaveLength(3);
});
