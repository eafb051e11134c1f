import { describe, expect, test } from "bun:test";
import { checkValue, Drift } from "@pko/rpc";
import { Redactor } from "../system/redact.ts";
import { DriftFindings, driftedResource } from "./drift.ts";

const redactor = new Redactor();
const clean = (text: string) => redactor.clean(text);
const urn = "urn:pulumi:dev::demo::t::n";
const found = (metadata: object) => driftedResource({ op: "update", urn, ...metadata }, clean);
const masked = { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", ciphertext: "[secret]" };

const outputs = (before: unknown, after: unknown) => ({
  old: { inputs: {}, outputs: before },
  new: { inputs: {}, outputs: after },
  detailedDiff: null,
});

describe("a drifted resource has the paths of", () => {
  const cases: readonly (readonly [string, object, readonly string[]])[] = [
    ["a changed value", outputs({ a: 1, b: 2 }, { a: 1, b: 3 }), ["b"]],
    ["an added and a removed value", outputs({ a: 1 }, { b: 1 }), ["a", "b"]],
    ["nested values", outputs({ data: { x: "1", y: "2" } }, { data: { x: "2", y: "2" } }), ["data.x"]],
    ["items", outputs({ list: [1, 2] }, { list: [1, 3, 4] }), ["list[1]", "list[2]"]],
    ["odd names", outputs({ data: { "a.b": 1, "c d": 1 } }, { data: {} }), ['data["a.b"]', 'data["c d"]']],
    ["a value of another type", outputs({ a: [1] }, { a: { 0: 1 } }), ["a"]],
    ["a value that became null", outputs({ a: {} }, { a: null }), ["a"]],
    [
      "inputs, if the outputs are the same",
      { old: { inputs: { size: 1 } }, new: { inputs: { size: 2 } }, detailedDiff: null },
      ["size"],
    ],
    [
      "the provider's diff, if there is one",
      { ...outputs({ a: 1 }, { a: 2 }), detailedDiff: { "spec.replicas": { diffKind: "update", inputDiff: false } } },
      ["spec.replicas"],
    ],
    ["the provider's list, if nothing else shows them", { ...outputs({}, {}), diffs: ["tags", 7] }, ["tags"]],
    ["nothing, if only a secret has changed", outputs({ a: masked }, { a: masked }), []],
  ];
  for (const [name, metadata, paths] of cases) {
    test(name, () => expect(found(metadata)).toEqual({ urn, operation: "update", properties: [...paths] }));
  }
});

describe("drift", () => {
  test("is a resource that was changed or deleted", () => {
    const operations = ["update", "delete", "same", "refresh", "read", undefined].filter((op) => found({ op }));
    expect(operations).toEqual(["update", "delete"]);
    const deleted = { op: "delete", old: { outputs: { a: 1 } }, new: null };
    expect(found(deleted)).toEqual({ urn, operation: "delete", properties: [] });
  });

  test("contains no values and no secrets", () => {
    redactor.add("canary-key");
    const drifted = found(outputs({ "canary-key": "canary-a" }, { "canary-key": "canary-b" }));
    expect(JSON.stringify(drifted)).not.toContain("canary");
  });

  test("is limited, and what does not fit is counted", () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`${"long".repeat(100)}${index}`, 1]));
    const findings = new DriftFindings();
    for (let index = 0; index < 150; index += 1) {
      const resource = found({ urn: `${urn}${"x".repeat(10_000)}${index}`, ...outputs({}, many) });
      if (resource) findings.add(resource);
    }
    const drift = findings.among({ same: 40, update: 140, delete: 10 });
    expect(drift).toMatchObject({ omitted: 50 });
    expect(drift.resources[0]?.properties).toHaveLength(64);
    expect(checkValue(Drift, drift)).toMatchObject({ ok: true });
  });

  test("counts resources whose event was too large to be read", () => {
    expect(new DriftFindings().among({ same: 3, update: 1 })).toEqual({ resources: [], omitted: 1 });
    expect(new DriftFindings().among({ same: 3 })).toEqual({ resources: [], omitted: 0 });
  });

  test("survives values that are nested deeply", () => {
    const nested = (leaf: number): unknown => Array.from({ length: 1000 }).reduce((value) => [value], leaf);
    expect(found(outputs({ a: nested(1) }, { a: nested(2) }))).toMatchObject({ properties: [] });
  });
});
