import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../testing/folders.ts";
import { destroyChanges, differingUrns, readDestroySteps } from "./destroy-steps.ts";

const urn = (name: string): string => `urn:pulumi:dev::demo::a:b:C::${name}`;
const event = (name: string, inputs: object, sequence: number): object => ({
  sequence,
  timestamp: sequence,
  resourcePreEvent: {
    metadata: {
      op: "delete",
      urn: urn(name),
      type: "a:b:C",
      old: { id: name, inputs, outputs: { n: sequence } },
      new: null,
    },
  },
});

async function steps(...events: readonly object[]) {
  const path = join(temporaryFolder(), "engine.log");
  writeFileSync(path, `${events.map((each) => JSON.stringify(each)).join("\n")}\n{"resourcePreEvent":`);
  return await readDestroySteps(path);
}

describe("the steps of a destroy", () => {
  test("are the same in any order, with any time and any outputs", async () => {
    const first = await steps({ sequence: 0, preludeEvent: {} }, event("a", { x: 1, y: 2 }, 1), event("b", {}, 2));
    const second = await steps(
      event("b", {}, 7),
      { diagnosticEvent: { message: "warning" } },
      event("a", { y: 2, x: 1 }, 8),
    );
    expect(second).toEqual(first);
    expect(differingUrns(first, second)).toEqual([]);
    expect(destroyChanges(first)).toEqual([
      { op: "delete", urn: urn("a") },
      { op: "delete", urn: urn("b") },
    ]);
  });

  test("differ at resources with other inputs, and at those that are only in one", async () => {
    const planned = await steps(event("a", { x: 1 }, 1), event("b", {}, 2), event("gone", {}, 3));
    const current = await steps(event("a", { x: 2 }, 1), event("b", {}, 2), event("new", {}, 3));
    expect(differingUrns(planned, current).toSorted()).toEqual([urn("a"), urn("gone"), urn("new")]);
  });
});
