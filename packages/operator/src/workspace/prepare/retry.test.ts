import { expect, test } from "bun:test";

import type { PrepareFailure } from "@pko/rpc";

import { retryAfterFailure, retryWhileBackedOff } from "./retry.ts";

const now = 5_000_000;
const workspace = { metadata: { uid: "w1-158" } };
const failure = (reason: PrepareFailure["reason"]): PrepareFailure => ({
  phase: "source",
  reason,
  message: "",
  lines: [],
});

test("a failure is retried less and less often, and sooner if it may be transient", () => {
  const seconds = (reason: PrepareFailure["reason"]): number[] =>
    [0, 1, 2, 50].map((failures) => {
      const next = retryAfterFailure({ now, workspace, retry: { failures, at: now } }, failure(reason));
      expect(next.failures).toBe(failures + 1);
      return (next.at - now) / 1000;
    });
  expect(seconds("sourceUnavailable")).toEqual([10, 20, 40, 600]);
  expect(seconds("installFailed")).toEqual([60, 120, 240, 600]);
  expect(retryAfterFailure({ now, workspace }, failure("installFailed"))).toEqual({ failures: 1, at: now + 60_000 });
});

test("a retry that is already scheduled stays", () => {
  const retry = { failures: 2, at: now + 7 };
  expect(retryAfterFailure({ now, workspace, retry }, failure("installFailed"))).toEqual(retry);
  expect(retryWhileBackedOff({ now, workspace, retry })).toEqual(retry);
});

test("a workspace that an earlier process scaled to zero is retried after the longest pause", () => {
  expect(retryWhileBackedOff({ now, workspace })).toEqual({ failures: 1, at: now + 600_000 });
});

test("workspaces that failed together are not retried together", () => {
  const ids = Array.from({ length: 20 }, (_, index) => ({ metadata: { uid: `w${index}` } }));
  const times = ids.flatMap((other) => [
    retryAfterFailure({ now, workspace: other }, failure("installFailed")).at,
    retryWhileBackedOff({ now, workspace: other }).at,
  ]);
  expect(new Set(times).size).toBe(times.length);
});
