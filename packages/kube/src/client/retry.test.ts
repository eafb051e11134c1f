import { describe, expect, test } from "bun:test";

import { ApiError, ConnectionError } from "./errors.ts";
import { backoff, retryDelay, type RetryPolicy } from "./retry.ts";

const policy: RetryPolicy = { attempts: 5, baseMs: 100, maxMs: 5000, random: () => 1 };
const answer = (status: number, retryAfterSeconds?: number): ApiError =>
  new ApiError("GET /x", {
    status,
    reason: "R",
    message: "m",
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
const noAnswer = (code: string): ConnectionError => new ConnectionError("GET /x", { code });

describe("what is tried again", () => {
  const cases: [string, unknown, { repeatable: boolean; once: boolean }][] = [
    ["too many requests", answer(429), { repeatable: true, once: false }],
    ["too many requests, with a time to come back", answer(429, 1), { repeatable: true, once: true }],
    ["an internal error", answer(500), { repeatable: true, once: false }],
    ["an internal error with a time: it may have been done", answer(500, 1), { repeatable: true, once: false }],
    ["a bad gateway", answer(502), { repeatable: true, once: false }],
    ["unavailable", answer(503), { repeatable: true, once: false }],
    ["unavailable, with a time to come back", answer(503, 1), { repeatable: true, once: true }],
    ["a gateway's time-out", answer(504), { repeatable: true, once: false }],
    ["a refused connection", noAnswer("ECONNREFUSED"), { repeatable: true, once: true }],
    ["a name that does not resolve", noAnswer("ENOTFOUND"), { repeatable: true, once: true }],
    ["a cut connection: it may have been done", noAnswer("ECONNRESET"), { repeatable: true, once: false }],
    ["no answer in time: it may have been done", noAnswer("DEADLINE"), { repeatable: true, once: false }],
    ["a server we do not trust", noAnswer("UNABLE_TO_VERIFY_LEAF_SIGNATURE"), { repeatable: false, once: false }],
    ["a certificate for another name", noAnswer("ERR_TLS_CERT_ALTNAME_INVALID"), { repeatable: false, once: false }],
    ["not found", answer(404), { repeatable: false, once: false }],
    ["a conflict", answer(409), { repeatable: false, once: false }],
    ["an invalid object", answer(422), { repeatable: false, once: false }],
    ["a forbidden call", answer(403), { repeatable: false, once: false }],
    ["a programming error", new TypeError("x"), { repeatable: false, once: false }],
  ];
  for (const [what, error, expected] of cases) {
    test(what, () => {
      const tried = (repeatable: boolean): boolean =>
        retryDelay({ error, attempt: 1, repeatable }, policy) !== undefined;
      expect({ repeatable: tried(true), once: tried(false) }).toEqual(expected);
    });
  }
});

test("the last attempt is the last", () => {
  expect(retryDelay({ error: answer(500), attempt: 4, repeatable: true }, policy)).toBeDefined();
  expect(retryDelay({ error: answer(500), attempt: 5, repeatable: true }, policy)).toBeUndefined();
});

test("never sooner than the server asks, and spread out", () => {
  const delay = (random: number): number | undefined =>
    retryDelay({ error: answer(429, 2), attempt: 1, repeatable: true }, { ...policy, random: () => random });
  expect(delay(0)).toBe(2000);
  expect(delay(1)).toBe(3000);
});

test("the wait doubles up to a limit, and is between half and all of it", () => {
  const steps = (random: number): number[] =>
    [1, 2, 3, 6, 7, 50].map((attempt) => backoff(attempt, { ...policy, random: () => random }));
  expect(steps(1)).toEqual([100, 200, 400, 3200, 5000, 5000]);
  expect(steps(0)).toEqual([50, 100, 200, 1600, 2500, 2500]);
});
