import { describe, expect, test } from "bun:test";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../testing/folders.ts";
import { cutPlanValues, hasPlanValues, refusedAt, withoutPlanValues } from "./refusal.ts";

const urn = "urn:pulumi:dev::demo::a:b:C::c";

describe("a refusal is recognized, with its resource", () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    [`resource ${urn} violates plan: properties changed: ~~value[{&{{old}}}!={&{{new}}}]`, urn],
    ["resource violates plan: properties changed: ++x", "urn:event"],
    ["delete is not allowed by the plan: no steps were expected for this resource", "urn:event"],
    ["create is not allowed by the plan: this resource is constrained to same", "urn:event"],
    [`expected resource operations for ${urn} but none were seen`, urn],
    [`no plan for resource ${urn}`, urn],
    ["error: the plan of the house is missing", undefined],
  ];
  for (const [message, expected] of cases) {
    test(message, () => expect(refusedAt(message, "urn:event")).toBe(expected as never));
  }
});

describe("values", () => {
  test("are dropped with everything after them", () => {
    expect(withoutPlanValues(`resource ${urn} violates plan: properties changed: ~~v[canary\ncanary]`)).toBe(
      `resource ${urn} violates plan (values are not shown)`,
    );
    expect(withoutPlanValues("x\nproperties changed: canary")).toBe("x\nproperties changed: (values are not shown)");
    expect(withoutPlanValues("Updating (dev):")).toBe("Updating (dev):");
    expect(hasPlanValues("nothing")).toBe(false);
  });

  for (const before of [0, 10, 64 * 1024 - 8, 64 * 1024, 300_000]) {
    test(`are cut from a file after ${before} bytes`, async () => {
      const path = join(temporaryFolder(), "out");
      writeFileSync(
        path,
        `${"x".repeat(before)}violates plan: properties changed: canary\n${"canary\n".repeat(50_000)}`,
      );
      await cutPlanValues(path);
      expect(readFileSync(path, "utf8")).toBe(`${"x".repeat(before)}violates plan (values are not shown)\n`);
    });
  }

  test("a file without values stays as it is, and a missing one is none", async () => {
    const path = join(temporaryFolder(), "out");
    writeFileSync(path, "x".repeat(200_000));
    await cutPlanValues(path);
    expect(statSync(path).size).toBe(200_000);
    await cutPlanValues(`${path}.missing`);
  });
});
