import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";

import { limits, type WatchSubscription } from "../../shared/contract.ts";
import { forgetWatches, prefetch } from "./watches.ts";

const realFetch = globalThis.fetch;
let requested: readonly WatchSubscription[] = [];

/** Records the subscriptions of each stream, which never sends anything. */
async function recordStream(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const q = new URL(url instanceof Request ? url.url : url, "http://localhost").searchParams.get("q") ?? "";
  requested = JSON.parse(Buffer.from(q, "base64url").toString()) as WatchSubscription[];
  return await new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
}

beforeAll(() => void (globalThis.fetch = Object.assign(recordStream, { preconnect: realFetch.preconnect })));
afterAll(() => void (globalThis.fetch = realFetch));
afterEach(() => forgetWatches());

const streamSettled = async (): Promise<void> => await Bun.sleep(60);
const names = (): (string | undefined)[] => requested.map(({ name }) => name);

test("watches that no page uses make room, the oldest first", async () => {
  for (let at = 1; at <= 50; at++) prefetch("stacks", { namespace: "a", name: `web-${at}` });
  await streamSettled();
  expect(requested.length).toBeLessThan(limits.subscriptionsPerStream);
  expect([names().at(0), names().at(-1)]).toEqual(["web-27", "web-50"]);
});

test("a watch that was used again is not the oldest one", async () => {
  prefetch("stacks", { namespace: "a", name: "first" });
  for (let at = 1; at <= 20; at++) prefetch("stacks", { namespace: "a", name: `web-${at}` });
  prefetch("stacks", { namespace: "a", name: "first" });
  for (let at = 21; at <= 30; at++) prefetch("stacks", { namespace: "a", name: `web-${at}` });
  await streamSettled();
  expect(names()).toContain("first");
  expect(names()).not.toContain("web-1");
});
