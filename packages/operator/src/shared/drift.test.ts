import { describe, expect, test } from "bun:test";

import { boundedDrift, driftCount, driftSummary } from "./drift.ts";

const urn = (name: string): string => `urn:pulumi:dev::demo::parent:index:Parent$kubernetes:core/v1:ConfigMap::${name}`;
const changed = (name: string, ...properties: readonly string[]) => ({
  urn: urn(name),
  operation: "update",
  properties: [...properties],
});
const many = (count: number) => Array.from({ length: count }, (_, index) => changed(`c${index}`, "data.x"));

describe("drift in a line", () => {
  const cases: readonly (readonly [string, Parameters<typeof driftSummary>[0], string])[] = [
    ["names properties", { resources: [changed("a", "x", "y")] }, "kubernetes:core/v1:ConfigMap a (x, y)"],
    [
      "shows what was deleted",
      { resources: [{ urn: urn("a"), operation: "delete" }] },
      "kubernetes:core/v1:ConfigMap a (deleted)",
    ],
    [
      "names a resource whose properties are unknown",
      { resources: [changed("a")] },
      "kubernetes:core/v1:ConfigMap a (changed)",
    ],
    [
      "counts what is omitted",
      { resources: [changed("a", "x")], omitted: 3 },
      "kubernetes:core/v1:ConfigMap a (x); and 3 more",
    ],
    ["counts if nothing is known", { resources: [], omitted: 3 }, "3 more"],
    ["keeps names with colons", { resources: [changed("a::b", "x")] }, "kubernetes:core/v1:ConfigMap a::b (x)"],
    ["keeps what is no URN", { resources: [{ urn: "odd", operation: "delete" }] }, "resource odd (deleted)"],
  ];
  for (const [name, drift, text] of cases) test(name, () => expect(driftSummary(drift)).toBe(text));

  test("is bounded", () => {
    const properties = Array.from({ length: 64 }, (_, index) => `p${index}`);
    expect(driftSummary({ resources: [changed("a", ...properties)] })).toEndWith("p7, and 56 more)");
    expect(driftSummary({ resources: many(100) })).toEndWith("c9 (data.x); and 90 more");
  });
});

describe("drift within limits", () => {
  test("keeps everything that fits", () => {
    expect(boundedDrift({ resources: many(3) }, { resources: 20, chars: 8192 })).toEqual({ resources: many(3) });
  });

  test("counts resources over either limit", () => {
    const drift = { resources: many(100), omitted: 5 };
    const few = boundedDrift(drift, { resources: 20, chars: 100_000 });
    expect([few.resources.length, few.omitted]).toEqual([20, 85]);
    const small = boundedDrift(drift, { resources: 100, chars: 1000 });
    expect(JSON.stringify(small.resources).length).toBeLessThan(1100);
    expect(driftCount(small)).toBe(105);
  });
});
