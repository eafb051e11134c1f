import { describe, expect, test } from "bun:test";

import { ApiError, isExpired } from "./errors.ts";
import { parseWatchEvent, readLines } from "./watch.ts";

function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

describe("lines do not depend on how the bytes are split", () => {
  const lines = ['{"a":"é€😀"}', "", '{"b":2}', "x".repeat(50)];
  const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""));
  for (const size of [1, 2, 3, 7, 1000]) {
    test(`into chunks of ${size}`, async () => {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.slice(i * size, (i + 1) * size),
      );
      expect(await Array.fromAsync(readLines(streamOf(chunks)))).toEqual(lines);
    });
  }
});

test("a stream that ends in the middle of a line is an error", async () => {
  const read = Array.fromAsync(readLines(streamOf([new TextEncoder().encode('{"a":1}\n{"b"')])));
  expect(await read.catch(String)).toContain("in the middle of an event");
});

test("events and bookmarks are parsed, unknown event types are ignored", () => {
  const object = { metadata: { name: "x", resourceVersion: "7" } };
  const parse = (type: string) => parseWatchEvent("GET /x", JSON.stringify({ type, object }));
  expect(parse("MODIFIED")).toMatchObject({ type: "MODIFIED", object });
  expect(parse("BOOKMARK")).toEqual({ type: "BOOKMARK", resourceVersion: "7" });
  expect(parse("LATER")).toBeUndefined();
});

test("an ERROR event is thrown as an ApiError", () => {
  const status = { kind: "Status", code: 410, reason: "Expired", message: "too old resource version" };
  const parse = (): unknown => parseWatchEvent("GET /x", JSON.stringify({ type: "ERROR", object: status }));
  try {
    parse();
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect(isExpired(error)).toBe(true);
    expect(String(error)).toContain("GET /x: 410 Expired: too old resource version");
  }
});
