import { describe, expect, test } from "bun:test";

import type { StreamMessage, Subscription } from "../../shared/contract.ts";
import { Collection, keyOf, type ObjectMeta } from "./collection.ts";
import { isSilent, resumed, retryDelay, silenceMs } from "./reconnect.ts";
import { parseSse } from "./sse.ts";

const id = "s1";
const object = (name: string, resourceVersion = "", change: "ADDED" | "DELETED" = "ADDED"): StreamMessage => ({
  id,
  type: "object",
  change,
  object: { metadata: { namespace: "a", name } },
  resourceVersion,
});
const synced = (resourceVersion: string): StreamMessage => ({ id, type: "synced", resourceVersion });
const reset: StreamMessage = { id, type: "reset" };

function collectionAfter(...messages: readonly StreamMessage[]): Collection<ObjectMeta> {
  const collection = new Collection<ObjectMeta>();
  for (const message of messages) collection.receive(message);
  return collection;
}

const namesIn = ({ objects }: Collection<ObjectMeta>): string[] => [...objects.values()].map(keyOf);

describe("a watched collection", () => {
  test("shows objects before its list is complete, and cannot be resumed until then", () => {
    const collection = collectionAfter(object("x", "5"), object("y", "6"));
    expect(namesIn(collection)).toEqual(["a/x", "a/y"]);
    expect(collection.resourceVersion).toBeUndefined();
    expect(collection.state.kind).toBe("loading");
  });

  test("continues from the list, and then from each object", () => {
    const collection = collectionAfter(object("x"), synced("10"));
    expect(collection.resourceVersion).toBe("10");
    collection.receive(object("x", "11", "DELETED"));
    expect(collection.resourceVersion).toBe("11");
    expect(namesIn(collection)).toEqual([]);
  });

  test("a bookmark advances the version and removes nothing", () => {
    const collection = collectionAfter(object("x"), synced("10"), synced("20"));
    expect(namesIn(collection)).toEqual(["a/x"]);
    expect(collection.resourceVersion).toBe("20");
  });

  test("after a reset, keeps what it has until the new list is complete", () => {
    const collection = collectionAfter(object("x"), object("y"), synced("10"), reset, object("y"));
    expect(namesIn(collection)).toEqual(["a/x", "a/y"]);
    collection.receive(synced("30"));
    expect(namesIn(collection)).toEqual(["a/y"]);
  });

  test("a list that was interrupted starts again", () => {
    const collection = collectionAfter(object("x"));
    collection.reopened();
    collection.receive(object("y"));
    collection.receive(synced("10"));
    expect(namesIn(collection)).toEqual(["a/y"]);
  });

  test("a reopened stream that continues removes nothing", () => {
    const collection = collectionAfter(object("x"), synced("10"));
    collection.reopened();
    collection.receive(object("y", "11"));
    expect(namesIn(collection)).toEqual(["a/x", "a/y"]);
  });

  test("what may no longer be seen is removed", () => {
    const denied: StreamMessage = { id, type: "denied", permission: "list stacks", message: "forbidden" };
    const collection = collectionAfter(object("x"), synced("10"), denied);
    expect(namesIn(collection)).toEqual([]);
    expect(collection.state).toEqual({ kind: "denied", permission: "list stacks", message: "forbidden" });
  });

  test("a problem is shown until something arrives", () => {
    const problem: StreamMessage = { id, type: "error", message: "timeout" };
    const collection = collectionAfter(problem);
    expect(collection.problem).toBe("timeout");
    collection.receive(object("x"));
    expect(collection.problem).toBe("");
  });
});

describe("reconnecting", () => {
  test("waits longer after each failure, up to a limit", () => {
    expect([1, 2, 3, 4, 5, 6, 20].map(retryDelay)).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
  });

  test("a connection without a heartbeat is dead", () => {
    expect(isSilent(1000, 1000 + silenceMs)).toBe(false);
    expect(isSilent(1000, 1001 + silenceMs)).toBe(true);
  });

  test("watches continue where they were, logs start again", () => {
    const watch: Subscription = { id: "w", kind: "watch", resource: "stacks" };
    const unlisted: Subscription = { id: "u", kind: "watch", resource: "updates" };
    const log: Subscription = { id: "l", kind: "log", namespace: "a", pod: "p", container: "c" };
    const versions = new Map([
      ["w", "10"],
      ["l", "11"],
    ]);
    expect(resumed([watch, unlisted, log], versions)).toEqual([{ ...watch, resourceVersion: "10" }, unlisted, log]);
  });
});

describe("Server-Sent Events", () => {
  test.each([
    ["an event", 'data: {"a":1}\n\n', { data: ['{"a":1}'], rest: "" }],
    ["several, and the beginning of another", "data: 1\n\ndata: 2\n\ndata: 3", { data: ["1", "2"], rest: "data: 3" }],
    ["a heartbeat", ": heartbeat\n\n", { data: [], rest: "" }],
    ["data of several lines", "event: message\ndata: 1\ndata: 2\n\n", { data: ["1\n2"], rest: "" }],
    ["carriage returns", "data: 1\r\n\r\n", { data: ["1"], rest: "" }],
  ])("%s", (_, text, parsed) => expect(parseSse(text)).toEqual(parsed));
});
