import { describe, expect, test } from "bun:test";
import { checkValue, RunResult } from "@pko/rpc";
import { Redactor } from "../system/redact.ts";
import { operationsIn, warnsOfPendingOperations } from "./pending-operations.ts";

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
