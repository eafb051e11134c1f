import { describe, expect, test } from "bun:test";
import type { ApprovalRequest } from "@pko/api";

import { ago, failed, stackOf, succeeded } from "../testing/views.ts";
import { parseTrigger, serializeTrigger, unusedNameFor, updateNameFor } from "./trigger.ts";

const request: ApprovalRequest = {
  state: "Pending",
  updateName: "web-plan",
  updateUid: "uid",
  digest: "sha256:a",
  trigger: "{}",
  summary: "",
  expiresAt: ago(0),
};

describe("the trigger of an update", () => {
  const trigger = { type: "up", generation: 1, revision: "c", reconcileRequest: "", inputs: "" } as const;

  test("determines the name of the Update, together with the previous update", () => {
    const stack = stackOf({ last: succeeded() });
    const name = updateNameFor(stack, trigger);
    expect(updateNameFor(stackOf({ last: succeeded() }), { ...trigger })).toBe(name);
    const others = [
      updateNameFor(stack, { ...trigger, revision: "d" }),
      updateNameFor(stack, { ...trigger, generation: 2 }),
      updateNameFor(stack, { ...trigger, reconcileRequest: "x" }),
      updateNameFor(stack, { ...trigger, inputs: "a.b@c" }),
      updateNameFor(stack, { ...trigger, digest: "sha256:a" }),
      updateNameFor(stack, { ...trigger, type: "destroy" }),
      updateNameFor(stackOf({ last: succeeded({ lastResyncTime: ago(1) }) }), trigger),
      updateNameFor(stackOf({ last: failed({ lastResyncTime: ago(3600) }) }), trigger),
      updateNameFor(stackOf({}), trigger),
    ];
    expect(new Set([name, ...others]).size).toBe(10);
  });

  test("determines a name that no recorded Update has, after a clock was wrong", () => {
    const stack = stackOf({ last: succeeded() });
    const name = updateNameFor(stack, trigger);
    expect(unusedNameFor(stack, trigger, {})).toBe(name);
    expect(unusedNameFor(stack, trigger, { recorded: ["web-other"] })).toBe(name);
    const second = unusedNameFor(stack, trigger, { recorded: [name] });
    const third = unusedNameFor(stack, trigger, { recorded: [second, name] });
    expect(new Set([name, second, third]).size).toBe(3);
    expect(unusedNameFor(stack, trigger, { recorded: [name] })).toBe(second);
    expect(unusedNameFor(stack, trigger, { recorded: [name], stage: { kind: "plan" } })).not.toBe(second);
  });

  test("determines the same name as in earlier versions, so that an upgrade does not repeat an Update", () => {
    expect(unusedNameFor(stackOf({ last: succeeded() }), trigger, {})).toBe("web-f37fb4e3c9fc");
  });

  test("determines the names of the Updates that make a plan and apply it", () => {
    const last = succeeded();
    const requested = (updateName: string) => stackOf({ last, status: { approval: { ...request, updateName } } });
    const plan = { kind: "plan" } as const;
    const names = [
      updateNameFor(stackOf({ last }), trigger),
      updateNameFor(stackOf({ last }), trigger, plan),
      updateNameFor(requested("expired"), trigger, plan),
      updateNameFor(requested("a"), trigger, { kind: "apply", request: { ...request, updateName: "a" } }),
      updateNameFor(requested("b"), trigger, { kind: "apply", request: { ...request, updateName: "b" } }),
    ];
    expect(new Set(names).size).toBe(names.length);
    expect(updateNameFor(requested("expired"), trigger, plan)).toBe(names[2] ?? "");
  });

  test("is restored from its text, and invalid text is ignored", () => {
    for (const each of [trigger, { ...trigger, digest: "sha256:a", run: "r" }]) {
      expect(parseTrigger(serializeTrigger(each))).toEqual(each);
    }
    for (const text of [undefined, "", "{", "null", "[]", '{"type":"rm"}']) expect(parseTrigger(text)).toBeUndefined();
  });
});
