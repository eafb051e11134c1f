/** Streams under conditions that a real API server does not provide: slow pages, silence, and logs that break. */
import { createServer, type AddressInfo } from "node:net";

import { manualClock, staticCredentials, systemClock, tokenBucket, type Clock } from "@pko/kube";
import { afterAll, expect, test } from "bun:test";

import { limits, type StreamMessage, type Subscription } from "../shared/contract.ts";
import type { Caller } from "./callers.ts";
import { isAfter } from "./log-feed.ts";
import { openStream } from "./stream.ts";

const stoppers: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stoppers) await stop();
});

/** An API server with these responses. Returns a caller who uses it. */
function callerOf(answer: (request: Request) => Response): Caller {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: answer });
  stoppers.push(async () => await server.stop(true));
  return callerAt(server.port ?? 0);
}

function callerAt(port: number): Caller {
  const credentials = staticCredentials({ server: `http://127.0.0.1:${port}`, token: "t", tls: {} });
  const requests = tokenBucket({ burst: 1, refillMs: 1, clock: systemClock });
  return { mode: "proxy", credentials, usage: { requests, streams: new Set(), isAccepted: true } };
}

interface LogPart {
  readonly text: string;
  /** When the connection breaks; the log ends if absent. */
  readonly breaks?: Promise<void>;
}

/** Each connection gets the next part of a log; then it ends, or breaks in the middle of the response. */
async function logServer(parts: readonly LogPart[]) {
  const since: string[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (data) => {
      const [, sinceTime] = /[?&]sinceTime=([^& ]+)/.exec(data.toString()) ?? [];
      const { text = "", breaks } = parts[since.length] ?? {};
      since.push(decodeURIComponent(sinceTime ?? "all"));
      const chunk = text === "" ? "" : `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
      socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${chunk}`);
      if (breaks) void breaks.then(() => socket.destroy());
      else socket.end("0\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  stoppers.push(async () => void server.close());
  return { since, caller: callerAt((server.address() as AddressInfo).port) };
}

function open(caller: Caller, subscription: Subscription, clock: Clock = systemClock) {
  const closing = new AbortController();
  const subscriptions = [subscription];
  const onUnauthorized = (): void => undefined;
  const response = openStream({ caller, subscriptions, clock, signal: closing.signal, onUnauthorized });
  stoppers.unshift(async () => closing.abort());
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const ended = async (): Promise<void> => {
    while (!(await reader.read()).done);
  };
  return { closing, ended, read: async () => new TextDecoder().decode((await reader.read()).value) };
}

const messagesIn = (text: string): StreamMessage[] =>
  text
    .split("\n\n")
    .filter((event) => event.startsWith("data: "))
    .map((event) => JSON.parse(event.slice(6)) as StreamMessage);

/** Reads until a message matches, and returns all. */
async function readUntil(
  { read }: ReturnType<typeof open>,
  matches: (message: StreamMessage) => boolean,
): Promise<StreamMessage[]> {
  const all: StreamMessage[] = [];
  while (!all.some(matches)) all.push(...messagesIn(await read()));
  return all;
}

const turn = async (): Promise<void> => await new Promise<void>((resolve) => void setTimeout(resolve, 1));
const watch = { id: "s", kind: "watch", resource: "stacks", resourceVersion: "1" } as const;
const log = { id: "l", kind: "log", namespace: "a", pod: "p", container: "c" } as const;

/** A watch event of 100 KB. */
function change(uid: string, version: number): string {
  const metadata = { uid, name: uid, resourceVersion: String(version) };
  return `${JSON.stringify({ type: "MODIFIED", object: { metadata, text: "x".repeat(100_000) } })}\n`;
}

/** A watch with these events, then silence. Counts those that were sent. */
function watched(next: (count: number) => string | undefined) {
  const sent = { count: 0 };
  const never = Promise.withResolvers<void>();
  const body = () =>
    new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const event = next(sent.count + 1);
          if (event === undefined) return await never.promise;
          sent.count++;
          controller.enqueue(new TextEncoder().encode(event));
        },
      },
      { highWaterMark: 0 },
    );
  return { sent, caller: callerOf(() => new Response(body())) };
}

test("a page that does not read gets only the newest state of an object that changes all the time", async () => {
  const total = 1000;
  const { sent, caller } = watched((count) => (count <= total ? change("a", count) : undefined));
  const page = open(caller, watch);
  while (sent.count < total) await turn();
  const messages = await readUntil(page, (each) => each.type === "object" && each.resourceVersion === String(total));
  // What was on its way when it began to read.
  expect(messages.length).toBeLessThan(total / 2);
});

test("a page that does not read stops the watch before its objects fill the memory", async () => {
  const { sent, caller } = watched((count) => change(`object-${count}`, count));
  const page = open(caller, watch);
  // 150 MB arrive at a page that reads, in the same process.
  const other = watched((count) => change(`object-${count}`, count));
  await readUntil(open(other.caller, watch), (each) => each.type === "object" && each.resourceVersion === "1500");
  expect(sent.count).toBeWithin(1, 500);
  // All of them arrive, in order, when it reads.
  const messages = await readUntil(page, (each) => each.type === "object" && each.resourceVersion === "600");
  const versions = messages.flatMap((each) => (each.type === "object" ? [Number(each.resourceVersion)] : []));
  expect(versions.slice(0, 600)).toEqual(Array.from({ length: 600 }, (_, at) => at + 1));
});

test("a silent stream has heartbeats", async () => {
  const clock = manualClock();
  const bookmark = `${JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "2" } } })}\n`;
  const { caller } = watched((count) => (count === 1 ? bookmark : undefined));
  const page = open(caller, watch, clock);
  expect(await page.read()).toStartWith("retry: ");
  expect(messagesIn(await page.read())).toEqual([{ id: "s", type: "synced", resourceVersion: "2" }]);
  const next = page.read();
  await clock.advance(limits.heartbeatSeconds * 1000);
  expect(await next).toBe(": heartbeat\n\n");
});

test("a watch that failed reports its recovery, even if nothing has changed", async () => {
  let requests = 0;
  const caller = callerOf(({ url }) => {
    if (++requests === 1) return new Response("unavailable", { status: 503 });
    if (new URL(url).searchParams.has("watch")) return new Response(new ReadableStream());
    return Response.json({ metadata: { resourceVersion: "9" }, items: [] });
  });
  const messages = await readUntil(open(caller, watch), ({ type }) => type === "synced");
  expect(messages.map(({ type }) => type)).toEqual(["error", "synced"]);
  // Where the watch continues, not the version of the list: changes in between are still to come.
  expect(messages.at(-1)).toMatchObject({ resourceVersion: "1" });
});

test("a page that disconnects ends its requests to the API server", async () => {
  const [arrived, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const caller = callerOf((request) => {
    request.signal.addEventListener("abort", () => ended.resolve());
    arrived.resolve();
    return new Response(new ReadableStream({ pull: async () => await new Promise(() => undefined) }));
  });
  const page = open(caller, watch);
  await page.read();
  const started = page.read();
  expect(caller.usage.streams.size).toBe(1);
  await arrived.promise;
  page.closing.abort();
  await started;
  await ended.promise;
  expect(caller.usage.streams.size).toBe(0);
});

const at = (second: number, fraction = "5"): string => `2030-01-01T00:00:0${second}.${fraction}Z`;

test("a log that breaks continues after its last line, and ends when it ends again without a new one", async () => {
  const breaking = Promise.withResolvers<void>();
  const { since, caller } = await logServer([
    { text: `${at(1)} one\n${at(2, "1")} two\n${at(2, "12")} three\n`, breaks: breaking.promise },
    // sinceTime includes its whole second.
    { text: `${at(2, "1")} two\n${at(2, "12")} three\n${at(2, "2")} four <b>\n` },
    { text: `${at(2, "2")} four <b>\n` },
  ]);
  const page = open(caller, log);
  const before = await readUntil(page, (each) => each.type === "line" && each.text === "three");
  breaking.resolve();
  const messages = [...before, ...(await readUntil(page, ({ type }) => type === "end"))];
  const lines = messages.flatMap((each) => (each.type === "line" ? [each.text] : []));
  expect(lines).toEqual(["one", "two", "three", "four <b>"]);
  expect(since).toEqual(["all", at(2, "12"), at(2, "2")]);
});

test("a very long line arrives in pieces", async () => {
  const text = "x".repeat(1_000_000);
  const caller = callerOf((request) =>
    new URL(request.url).searchParams.has("sinceTime") ? new Response("") : new Response(`${at(1)} ${text}\n`),
  );
  const messages = await readUntil(open(caller, log), ({ type }) => type === "end");
  const lines = messages.flatMap((each) => (each.type === "line" ? [each.text] : []));
  expect(lines.join("")).toBe(text);
});

test("times of a log are compared with the zeros that Go omits", () => {
  expect([isAfter(at(1, "12"), at(1, "2")), isAfter(at(1, "2"), at(1, "12")), isAfter(at(2, "1"), at(1, "9"))]).toEqual(
    [false, true, true],
  );
});

test("a stream ends when the API server no longer accepts its token, so that the page connects with a newer one", async () => {
  const caller = callerOf(() => Response.json({ kind: "Status", code: 401 }, { status: 401 }));
  const page = open(caller, watch);
  await page.ended();
  expect(caller.usage.streams.size).toBe(0);
});
