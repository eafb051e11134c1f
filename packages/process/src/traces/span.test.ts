import { expect, test } from "bun:test";

import { spanIdOf, traceIdIn, traceIdOf, traceparentOf } from "./span.ts";

test("IDs depend only on their source, so another process continues the same trace", () => {
  expect(traceIdOf("uid")).toMatch(/^[0-9a-f]{32}$/);
  expect(traceIdOf("uid")).toBe(traceIdOf("uid"));
  expect(traceIdOf("uid")).not.toBe(traceIdOf("other"));
  expect(spanIdOf("uid", "run")).toMatch(/^[0-9a-f]{16}$/);
  expect(spanIdOf("uid", "run")).not.toBe(spanIdOf("uid", "prepare"));
});

test("a traceparent names the trace, the parent, and whether they are recorded", () => {
  const context = { traceId: "a".repeat(32), spanId: "b".repeat(16) };
  expect(traceparentOf(context, true)).toBe(`00-${context.traceId}-${context.spanId}-01`);
  expect(traceparentOf(context, false)).toEndWith("-00");
  expect(traceIdIn(traceparentOf(context, true))).toBe(context.traceId);
  expect(traceIdIn("nonsense")).toBeUndefined();
  expect(traceIdIn(undefined)).toBeUndefined();
});
