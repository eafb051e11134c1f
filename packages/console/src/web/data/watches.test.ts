import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";

import { limits, type WatchSubscription } from "../../shared/contract.ts";
import { forgetWatches, prefetch } from "./watches.ts";

const realFetch = globalThis.fetch;
let stream = Promise.withResolvers<readonly WatchSubscription[]>();

/** Resolves with the subscriptions of the first stream, which never sends anything. */
async function recordStream(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const q = new URL(url instanceof Request ? url.url : url, "http://localhost").searchParams.get("q") ?? "";
  stream.resolve(JSON.parse(Buffer.from(q, "base64url").toString()) as WatchSubscription[]);
  return await new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
}

beforeAll(() => void (globalThis.fetch = Object.assign(recordStream, { preconnect: realFetch.preconnect })));
afterAll(() => void (globalThis.fetch = realFetch));
afterEach(() => {
  forgetWatches();
  stream = Promise.withResolvers();
});

const watchedNames = async (): Promise<(string | undefined)[]> => (await stream.promise).map(({ name }) => name);

test("watches that no page uses make room, the oldest first", async () => {
  for (let at = 1; at <= 50; at++) prefetch("stacks", { namespace: "a", name: `web-${at}` });
  const names = await watchedNames();
  expect(names.length).toBeLessThan(limits.subscriptionsPerStream);
  expect([names.at(0), names.at(-1)]).toEqual(["web-27", "web-50"]);
});

test("a watch that was used again is not the oldest one", async () => {
  prefetch("stacks", { namespace: "a", name: "first" });
  for (let at = 1; at <= 20; at++) prefetch("stacks", { namespace: "a", name: `web-${at}` });
  prefetch("stacks", { namespace: "a", name: "first" });
  for (let at = 21; at <= 30; at++) prefetch("stacks", { namespace: "a", name: `web-${at}` });
  const names = await watchedNames();
  expect(names).toContain("first");
  expect(names).not.toContain("web-1");
});
