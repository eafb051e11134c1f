import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { canonicalJson } from "@pko/rpc";
import { bindings } from "../testing/bindings.ts";
import { keyedHash, newKey, planDigest, seal, unseal, type PlanContent } from "./sealed-plan.ts";

const content: PlanContent = {
  version: 1,
  key: "a2V5",
  bindings,
  plan: { kind: "up", file: { b: 1, a: [{ d: 2, c: 3 }] } },
};

describe("a sealed plan", () => {
  test("is read back with its digest", () => {
    const sealed = seal(content);
    expect(sealed?.digest).toBe(planDigest(content));
    expect(sealed && unseal(sealed)).toEqual(content);
  });

  test("has the same digest in another order, and another one for any other content", () => {
    const reordered: PlanContent = {
      plan: { file: { a: [{ c: 3, d: 2 }], b: 1 }, kind: "up" },
      bindings: { ...bindings, target: "t" },
      key: "a2V5",
      version: 1,
    };
    expect(planDigest(reordered)).toBe(planDigest(content));
    for (const other of [
      { ...content, key: "b3RoZXI=" },
      { ...content, bindings: { ...bindings, stateTime: "2026-01-01T00:00:00Z" } },
      { ...content, bindings: { ...bindings, image: "other" } },
      { ...content, plan: { kind: "destroy" as const, steps: [] } },
    ]) {
      expect(planDigest(other)).not.toBe(planDigest(content));
    }
  });

  const pack = (value: unknown): string => gzipSync(canonicalJson(value)).toString("base64");
  const { digest } = seal(content) ?? { digest: "" };
  const damaged: Readonly<Record<string, { digest: string; content: string }>> = {
    "with another digest": { digest: "sha256:0", content: pack(content) },
    "with another content": { digest, content: pack({ ...content, key: "" }) },
    "that is empty": { digest, content: "" },
    "that is no archive": { digest, content: Buffer.from("text").toString("base64") },
  };
  for (const [name, sealed] of Object.entries(damaged)) {
    test(`${name} is not read`, () => expect(unseal(sealed)).toBeUndefined());
  }

  test("of a later version is not read", () => {
    const later = { ...content, version: 2 } as unknown as PlanContent;
    expect(unseal({ digest: planDigest(later), content: pack(later) })).toBeUndefined();
  });
});

test("equal values have equal hashes with one key only", () => {
  expect(keyedHash("a2V5", { b: 1, a: 2 })).toBe(keyedHash("a2V5", { a: 2, b: 1 }));
  expect(keyedHash("a2V5", "x")).not.toBe(keyedHash(newKey(), "x"));
});
