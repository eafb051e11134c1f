import { describe, expect, test } from "bun:test";
import type { ResourceEvent } from "@pko/records";
import { StackResources } from "./stack-resources.ts";

type Step = readonly [op: string, phase?: ResourceEvent["phase"]];

function exists(steps: readonly Step[], isPreview: boolean): boolean {
  const resources = new StackResources({ isPreview });
  for (const [op, phase = "finished"] of steps) {
    resources.add({ kind: "resource", phase, op, urn: "urn:a", resourceType: "t", id: "i" });
  }
  return resources.list().length === 1;
}

describe("after the steps of a run, a resource", () => {
  const cases: readonly (readonly [string, readonly Step[], boolean])[] = [
    ["that was created exists", [["create"]], true],
    ["that was not changed exists", [["same"]], true],
    ["that was imported or read exists", [["import"], ["read"]], true],
    ["that was refreshed and updated exists", [["refresh"], ["update"]], true],
    ["that was deleted does not exist", [["same"], ["delete"]], false],
    ["whose creation failed does not exist", [["create", "failed"]], false],
    ["whose update failed exists", [["update", "failed"]], true],
    ["whose deletion failed exists", [["delete", "failed"]], true],
    ["that was replaced exists", [["create-replacement"], ["replace"], ["delete-replaced"]], true],
    ["that was deleted and replaced exists", [["delete-replaced"], ["replace"], ["create-replacement"]], true],
    ["whose replacement failed exists", [["create-replacement", "failed"]], true],
    [
      "that was deleted, and whose replacement failed, does not exist",
      [["same"], ["delete-replaced"], ["create-replacement", "failed"]],
      false,
    ],
    ["whose step has only started is unknown", [["update", "started"]], false],
  ];
  for (const [name, steps, expected] of cases) test(name, () => expect(exists(steps, false)).toBe(expected));
});

describe("after a preview, a resource", () => {
  const cases: readonly (readonly [string, readonly Step[], boolean])[] = [
    ["that would be created does not exist", [["create"]], false],
    ["that would be deleted exists", [["delete"]], true],
    ["that would be updated exists", [["update"]], true],
    ["that would be replaced exists", [["delete-replaced"], ["replace"], ["create-replacement"]], true],
  ];
  for (const [name, steps, expected] of cases) test(name, () => expect(exists(steps, true)).toBe(expected));
});

test("a resource has its place in the stack, and no properties", () => {
  const resources = new StackResources({ isPreview: false });
  const place = { urn: "urn:a", parent: "urn:b", provider: "urn:p", id: "i" };
  const changes = [{ path: "a", kind: "add", new: "1" }];
  resources.add({ kind: "resource", phase: "finished", op: "create", resourceType: "t", changes, ...place });
  resources.add({ kind: "notice", message: "x" });
  expect(resources.list()).toEqual([place]);
});
