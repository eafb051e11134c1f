import { expect, test } from "bun:test";

import type { PrepareFailure } from "@pko/rpc";

import { retryAfterFailure, retryWhileBackedOff } from "./retry.ts";

const now = 5_000_000;
const failure = (reason: PrepareFailure["reason"]): PrepareFailure => ({
  phase: "source",
  reason,
  message: "",
  lines: [],
});

test("a failure is retried less and less often, and sooner if it may be transient", () => {
  const seconds = (reason: PrepareFailure["reason"]): number[] =>
    [0, 1, 2, 50].map((failures) => {
      const next = retryAfterFailure({ now, retry: { failures, at: now } }, failure(reason));
      expect(next.failures).toBe(failures + 1);
      return (next.at - now) / 1000;
    });
  expect(seconds("sourceUnavailable")).toEqual([10, 20, 40, 600]);
  expect(seconds("installFailed")).toEqual([60, 120, 240, 600]);
  expect(retryAfterFailure({ now }, failure("installFailed"))).toEqual({ failures: 1, at: now + 60_000 });
});

test("a retry that is already scheduled stays", () => {
  const retry = { failures: 2, at: now + 7 };
  expect(retryAfterFailure({ now, retry }, failure("installFailed"))).toEqual(retry);
  expect(retryWhileBackedOff({ now, retry })).toEqual(retry);
});

test("a workspace that an earlier process scaled to zero is retried after the longest pause", () => {
  expect(retryWhileBackedOff({ now })).toEqual({ failures: 1, at: now + 600_000 });
});
