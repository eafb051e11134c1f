import { describe, expect, test } from "bun:test";

import { ApiError, ConnectionError } from "../errors.ts";
import { backoff, retryDelay, type RetryPolicy } from "./retry.ts";

const policy: RetryPolicy = { attempts: 5, baseMs: 100, maxMs: 5000, random: () => 1 };
const response = (status: number, retryAfterSeconds?: number): ApiError =>
  new ApiError("GET /x", {
    status,
    reason: "R",
    message: "m",
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
const noResponse = (code: string): ConnectionError => new ConnectionError("GET /x", { code });

describe("which failures are retried", () => {
  const cases: [string, unknown, { repeatable: boolean; once: boolean }][] = [
    ["too many requests", response(429), { repeatable: true, once: false }],
    ["too many requests with Retry-After", response(429, 1), { repeatable: true, once: true }],
    ["an internal error", response(500), { repeatable: true, once: false }],
    [
      "an internal error with Retry-After: it may have been processed",
      response(500, 1),
      { repeatable: true, once: false },
    ],
    ["a bad gateway", response(502), { repeatable: true, once: false }],
    ["unavailable", response(503), { repeatable: true, once: false }],
    ["unavailable with Retry-After", response(503, 1), { repeatable: true, once: true }],
    ["a gateway timeout", response(504), { repeatable: true, once: false }],
    ["a refused connection", noResponse("ECONNREFUSED"), { repeatable: true, once: true }],
    ["a name that does not resolve", noResponse("ENOTFOUND"), { repeatable: true, once: true }],
    ["a broken connection: it may have been processed", noResponse("ECONNRESET"), { repeatable: true, once: false }],
    ["no response in time: it may have been processed", noResponse("DEADLINE"), { repeatable: true, once: false }],
    [
      "an untrusted server certificate",
      noResponse("UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
      { repeatable: false, once: false },
    ],
    ["a certificate for another name", noResponse("ERR_TLS_CERT_ALTNAME_INVALID"), { repeatable: false, once: false }],
    ["not found", response(404), { repeatable: false, once: false }],
    ["a conflict", response(409), { repeatable: false, once: false }],
    ["an invalid object", response(422), { repeatable: false, once: false }],
    ["a forbidden call", response(403), { repeatable: false, once: false }],
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

test("the number of attempts is limited", () => {
  expect(retryDelay({ error: response(500), attempt: 4, repeatable: true }, policy)).toBeDefined();
  expect(retryDelay({ error: response(500), attempt: 5, repeatable: true }, policy)).toBeUndefined();
});

test("the delay is at least the server's Retry-After, with jitter", () => {
  const delay = (random: number): number | undefined =>
    retryDelay({ error: response(429, 2), attempt: 1, repeatable: true }, { ...policy, random: () => random });
  expect(delay(0)).toBe(2000);
  expect(delay(1)).toBe(3000);
});

test("the delay doubles up to a limit, and is between half and all of it", () => {
  const steps = (random: number): number[] =>
    [1, 2, 3, 6, 7, 50].map((attempt) => backoff(attempt, { ...policy, random: () => random }));
  expect(steps(1)).toEqual([100, 200, 400, 3200, 5000, 5000]);
  expect(steps(0)).toEqual([50, 100, 200, 1600, 2500, 2500]);
});
