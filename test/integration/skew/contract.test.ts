/** The current description of version 1 equals the released version 1. */
import { describe, expect, test } from "bun:test";
import { PrepareRequestV1, protocolVersion, StartRequestV1, vocabularies } from "@pko/rpc";

import * as v1 from "../../skew/v1/rpc/src/index.ts";

test("the previous version is frozen in the repository", () => {
  expect<number>(v1.protocolVersion).toBe(protocolVersion - 1);
});

describe("version 1 has the same", () => {
  const schemas: Record<string, readonly [current: unknown, frozen: unknown]> = {
    "request to prepare": [PrepareRequestV1, v1.PrepareRequest],
    "request to start": [StartRequestV1, v1.StartRequest],
    "kinds of events": [vocabularies[1].event, v1.RunEvent],
    "states of a run": [vocabularies[1].startState, v1.StartResult.properties.state],
    "states of a cancellation": [vocabularies[1].cancelState, v1.CancelResult.properties.state],
    operations: [vocabularies[1].operation, v1.RunResult.properties.operation],
    outcomes: [vocabularies[1].outcome, v1.RunResult.properties.outcome],
    "classes of errors": [vocabularies[1].errorClass, v1.ErrorClass],
    "phases of preparing": [vocabularies[1].preparePhase, v1.PreparePhase],
    "reasons of preparing": [vocabularies[1].prepareReason, v1.PrepareReason],
    "error codes": [vocabularies[1].errorCode, v1.AgentErrorCode],
  };
  for (const [name, [current, frozen]] of Object.entries(schemas)) {
    test(name, () => expect(toJson(current)).toEqual(toJson(frozen)));
  }
});

const toJson = (schema: unknown): unknown => JSON.parse(JSON.stringify(schema));
