import { describe, expect, test } from "bun:test";
import { checkValue, RunResult } from "@pko/rpc";
import { Redactor } from "../system/redact.ts";
import { parseState, warnsOfPendingOperations } from "./stack-state.ts";

const operationsIn = (text: string, masks: typeof clean) => parseState(text, masks)?.pending;

const redactor = new Redactor();
const clean = (text: string) => redactor.clean(text);
const urn = "urn:pulumi:dev::web::aws:s3/bucket:Bucket::assets";
const state = (pending?: object[]): string =>
  JSON.stringify({ version: 3, deployment: { resources: [], pending_operations: pending } });
const pending = (type: string) => ({ type, resource: { urn, inputs: { password: "canary" } } });

describe("the state", () => {
  test("lists interrupted operations, of which nothing but the URN and the operation is reported", () => {
    expect(operationsIn(state([pending("creating"), pending("updating")]), clean)).toEqual([
      { urn: clean(urn), operation: "creating" },
      { urn: clean(urn), operation: "updating" },
    ]);
  });

  test("may have none", () => {
    expect(operationsIn(state(), clean)).toEqual([]);
    expect(operationsIn(state([]), clean)).toEqual([]);
  });

  test("may have more than a result", () => {
    const operations = operationsIn(state(Array.from({ length: 1_000 }, () => pending("creating"))), clean);
    expect(checkValue(RunResult.properties.pendingOperations, operations)).toMatchObject({ ok: true });
  });

  test("has resources, of which only the place in the stack is recorded", () => {
    redactor.add("canary-id");
    const provider = "urn:pulumi:dev::web::pulumi:providers:aws::default";
    const resources = [
      { urn: provider, id: "1", custom: true },
      {
        urn,
        id: "assets-canary-id",
        parent: "urn:stack",
        provider: `${provider}::1`,
        dependencies: ["urn:a"],
        inputs: { password: "canary" },
      },
      { urn, id: "assets-6", delete: true },
    ];
    const parsed: unknown = parseState(JSON.stringify({ version: 3, deployment: { resources } }), clean)?.resources;
    expect(parsed).toEqual([
      { urn: provider, id: "1", dependencies: [] },
      { urn, id: "assets-[secret]", parent: "urn:stack", provider, dependencies: ["urn:a"] },
    ]);
  });

  test("may have another format", () => {
    expect(operationsIn("[]", clean)).toBeUndefined();
  });
});

test("the CLI's warning about interrupted operations is recognized", () => {
  expect(
    warnsOfPendingOperations(
      `Attempting to deploy or update resources with 1 pending operations from previous deployment.\n  * ${urn}, interrupted while creating\n`,
    ),
  ).toBe(true);
  expect(warnsOfPendingOperations("a program that mentions pending operations")).toBe(false);
});
