/** The log of a workspace's pod and the records of runs: programs can write to both. */
import { formatFeedLine, parseLogLine } from "@pko/records";

import { LogFormatter } from "../../../packages/cli/src/commands/log-lines.ts";
import { RunLog } from "../../../packages/cli/src/runs/run-log.ts";
import { eventLine } from "../../../packages/cli/src/watch/event-lines.ts";
import * as browser from "../../../packages/records/src/browser.ts";
import { decodeContent, encodeContent, type RecordContent } from "../../../packages/records/src/record.ts";
import { hold, jsonOf, textOf, type Target } from "../engine/target.ts";

// oxlint-disable-next-line no-control-regex -- it must match control characters
const controls = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/;

async function check(input: Uint8Array): Promise<void> {
  const text = textOf(input);
  checkFormatter(text);
  for (const line of text.split("\n").slice(0, 20)) checkLine(line);
  await checkRecord(text, jsonOf(input));
}

function checkFormatter(text: string): void {
  const formatter = new LogFormatter({ raw: false });
  const shown = formatter.format(text) + formatter.end();
  hold(!controls.test(shown), "a log does not control the terminal");
}

function checkLine(line: string): void {
  const parsed = parseLogLine(line);
  const inBrowser = browser.parseLogLine(line);
  // The schema has no largest integer.
  if (parsed.kind !== "event" || !Number.isSafeInteger(parsed.event.seq)) return;
  hold(Bun.deepEquals(inBrowser, parsed), "the console understands what the command line understands");
  const { run, event } = parsed;
  hold(Bun.deepEquals(parseLogLine(formatFeedLine(run, event)), parsed), "an event is read as it was written");
  hold(!controls.test(eventLine(event) ?? ""), "an event does not control the terminal");
  const log = RunLog.of([event]);
  hold(log.events.length === 1 && log.resources.length <= 1, "an event is counted once");
}

async function checkRecord(text: string, value: unknown): Promise<void> {
  await decodeContent(text);
  if (value === undefined) return;
  const encoded = await encodeContent(value as RecordContent);
  const content = await decodeContent(encoded);
  const inBrowser = await browser.decodeContent(encoded);
  if (content?.events.every(({ seq }) => Number.isSafeInteger(seq)))
    hold(Bun.deepEquals(inBrowser, content), "the console reads the records that the command line reads");
}

const time = "2030-01-01T00:00:00Z";
const resource = {
  kind: "resource",
  phase: "finished",
  op: "update",
  urn: "urn:pulumi:a::b::c::d",
  resourceType: "t",
  durationMs: 5,
};
const changes = [{ path: "a.b", kind: "update", old: "1", new: "2" }];

export const logLinesTarget: Target = {
  name: "log-lines",
  form: "json",
  seeds: [
    JSON.stringify({ feed: 1, run: "uid", seq: 1, time, event: { ...resource, changes, replaceKeys: ["a"] } }),
    JSON.stringify({
      feed: 1,
      run: "uid",
      seq: 2,
      time,
      event: { kind: "diagnostic", severity: "error", message: "\u001B[31mx" },
    }),
    JSON.stringify({
      feed: 1,
      run: "uid",
      seq: 3,
      time,
      event: { kind: "policy", level: "mandatory", policy: "p", message: "m" },
    }),
    JSON.stringify({
      feed: 1,
      run: "uid",
      seq: 4,
      time,
      event: { kind: "summary", changes: { create: 1 }, durationSeconds: 1 },
    }),
    JSON.stringify({ level: "info", ts: time, msg: "run started", run: "uid", operation: "up", logger: "agent" }),
    JSON.stringify({
      version: 1,
      events: [{ seq: 1, time, event: resource }],
      resources: [{ urn: resource.urn, parent: "p", provider: "q", id: "i", dependencies: ["x"] }],
      omitted: { events: 0, resources: 0, values: 0 },
    }),
  ],
  words: ["\u001B]8;;http://x\u0007", "\u001B[2J", "\u009B31m", "run finished", "notice", "permalink", "step"],
  rounds: 1200,
  check,
};
