import { describe, expect, test } from "bun:test";

import * as browser from "./browser.ts";
import { formatFeedLine, parseLogLine } from "./feed.ts";
import { emptyContent, encodeContent, type RecordContent } from "./record.ts";
import type { NumberedEvent } from "./run-event.ts";

const event: NumberedEvent = { seq: 1, time: "2030-01-01T00:00:00Z", event: { kind: "notice", message: "a" } };

describe("reading a line of the log without a schema", () => {
  test.each([
    ["an event", formatFeedLine("uid", event)],
    ["output of Pulumi", "Updating (dev):"],
    ["a message of the agent", '{"level":"info","ts":"T","msg":"run started","logger":"agent","run":"uid"}'],
    ["a message of an earlier agent", '{"time":"T","level":"info","message":"run started","run":"uid"}'],
    ["a damaged line", '{"feed":1,'],
    ["a feed of a later version", '{"feed":2,"run":"uid","seq":1,"time":"","event":{"kind":"notice","message":""}}'],
    ["an event without a number", '{"feed":1,"run":"uid","time":"","event":{"kind":"notice","message":""}}'],
    ["a resource without a URN", '{"feed":1,"run":"u","seq":1,"time":"","event":{"kind":"resource","op":"same"}}'],
  ])("agrees with the schema about %s", (_, line) => {
    expect(browser.parseLogLine(line)).toEqual(parseLogLine(line));
  });
});

describe("reading a record without a schema", () => {
  test("returns what was written", async () => {
    const content: RecordContent = { ...emptyContent, events: [event], resources: [{ urn: "urn:pulumi:a::b::c::d" }] };
    expect(await browser.decodeContent(await encodeContent(content))).toEqual(content);
  });

  test.each([
    ["damaged data", "not base64 of gzip"],
    ["a later version", { ...emptyContent, version: 2 }],
    ["events that are no list", { ...emptyContent, events: {} }],
    ["an event without a kind", { ...emptyContent, events: [{ seq: 1, time: "", event: {} }] }],
    ["a resource without a URN", { ...emptyContent, resources: [{}] }],
    ["missing counts", { ...emptyContent, omitted: {} }],
  ])("rejects %s", async (_, value) => {
    const encoded = typeof value === "string" ? value : await encodeContent(value as RecordContent);
    expect(await browser.decodeContent(encoded)).toBeUndefined();
  });
});
