import { describe, expect, test } from "bun:test";
import { manualClock } from "@pko/kube";

import { Endpoints } from "./endpoints.ts";
import type { GitRefs } from "./git-remote.ts";

const failure: GitRefs = { kind: "failed", problem: "unreachable", message: "it does not respond" };
const listed: GitRefs = { kind: "listed", commits: new Map() };

function setting() {
  const clock = manualClock();
  const endpoints = new Endpoints(clock, () => 0);
  const start = clock.monotonic();
  /** A poll that starts now and ends after a second. */
  const poll = async (result: GitRefs): Promise<number | undefined> => {
    const at = clock.monotonic();
    await clock.advance(1000);
    endpoints.record("x", result, at);
    const resting = endpoints.resting("x");
    return resting && resting.restsUntil - clock.monotonic();
  };
  return { clock, endpoints, start, poll };
}

describe("a server that does not respond", () => {
  test("rests from the second round on, longer each time, and at most five minutes", async () => {
    const { poll } = setting();
    const rests: (number | undefined)[] = [];
    for (let round = 0; round < 7; round++) rests.push(await poll(failure));
    expect(rests).toEqual([undefined, 30_000, 60_000, 120_000, 240_000, 300_000, 300_000]);
  });

  test("has failed once, however many polls ran at the same time", async () => {
    const { clock, endpoints } = setting();
    const at = clock.monotonic();
    await clock.advance(20_000);
    for (let each = 0; each < 32; each++) endpoints.record("x", failure, at);
    expect([endpoints.failing("x")?.failures, endpoints.resting("x")]).toEqual([1, undefined]);
  });

  const responses: readonly (readonly [string, GitRefs])[] = [
    ["a list", listed],
    ["rejected credentials", { ...failure, problem: "auth" }],
    ["a missing repository", { ...failure, problem: "notFound" }],
  ];
  test.each(responses)("is no longer suspect after %s", async (_, response) => {
    const { endpoints, poll } = setting();
    for (let round = 0; round < 3; round++) await poll(failure);
    await poll(response);
    expect(endpoints.failing("x")).toBeUndefined();
  });
});

describe("a server that names a time", () => {
  test("rests until then, after the first failure", async () => {
    const { poll } = setting();
    expect(await poll({ ...failure, retryAfterMs: 90_000 })).toBe(90_000);
  });

  test("rests for a quarter of an hour at most", async () => {
    const { poll } = setting();
    expect(await poll({ ...failure, retryAfterMs: 86_400_000 })).toBe(900_000);
  });

  test("rests for the longest time that responses of one round name", async () => {
    const { clock, endpoints } = setting();
    const at = clock.monotonic();
    await clock.advance(1000);
    endpoints.record("x", { ...failure, retryAfterMs: 10_000 }, at);
    endpoints.record("x", { ...failure, retryAfterMs: 86_400_000 }, at);
    endpoints.record("x", failure, at);
    expect((endpoints.resting("x")?.restsUntil ?? 0) - clock.monotonic()).toBe(900_000);
  });
});
