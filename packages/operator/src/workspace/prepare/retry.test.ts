import { expect, test } from "bun:test";

import type { PrepareFailure } from "@pko/rpc";

import { retryAfterMs } from "./retry.ts";

test("a failure is retried less and less often, and sooner if it may be transient", () => {
  const failure = (reason: PrepareFailure["reason"]): PrepareFailure => ({
    phase: "source",
    reason,
    message: "",
    lines: [],
  });
  const seconds = (reason: PrepareFailure["reason"]): number[] =>
    [0, 1, 2, 50].map((failures) => retryAfterMs(failure(reason), failures) / 1000);
  expect(seconds("sourceUnavailable")).toEqual([10, 20, 40, 600]);
  expect(seconds("installFailed")).toEqual([60, 120, 240, 600]);
});
