import { describe, expect, test } from "bun:test";

import { outputsSecretNameOf, statefulSetNameOf, updateNameOf, workspaceNameOf, type UpdateTrigger } from "./names.ts";

const trigger: UpdateTrigger = {
  stackName: "web",
  stackUid: "0d6c",
  type: "up",
  generation: 3,
  revision: "main@sha1:abc",
  reconcileRequest: "",
  resyncSlot: 0,
  attempt: 1,
};

describe("the name of an Update", () => {
  test("starts with its Stack's name", () => expect(updateNameOf(trigger)).toMatch(/^web-[0-9a-f]{12}$/));

  test("is the same for the same trigger", () => expect(updateNameOf({ ...trigger })).toBe(updateNameOf(trigger)));

  const others: Partial<UpdateTrigger>[] = [
    { stackUid: "0d6d" },
    { type: "preview" },
    { generation: 4 },
    { revision: "main@sha1:abd" },
    { reconcileRequest: "now" },
    { resyncSlot: 1 },
    { attempt: 2 },
  ];
  for (const other of others) {
    test(`differs when ${Object.keys(other).join()} differs`, () => {
      expect(updateNameOf({ ...trigger, ...other })).not.toBe(updateNameOf(trigger));
    });
  }

  test("fits into a label even if the Stack's name is long", () => {
    expect(updateNameOf({ ...trigger, stackName: "a".repeat(200) }).length).toBeLessThanOrEqual(63);
  });
});

test("a Stack's other objects have the same names as in the Go operator", () => {
  expect(workspaceNameOf("web")).toBe("web");
  expect(statefulSetNameOf("web")).toBe("web-workspace");
  expect(outputsSecretNameOf("web-1")).toBe("web-1-stack-outputs");
});
