import { expect, test } from "bun:test";

import { stackLogKeys, updateLogKeys, workspaceLogKeys } from "./log-keys.ts";

const ownerReferences = [{ apiVersion: "pulumi.com/v1", kind: "Stack", name: "web", uid: "s1" }];
const workspace = { metadata: { name: "web", ownerReferences } };
const update = { metadata: { name: "web-1", uid: "u1", labels: { "pulumi.com/stack-name": "web" } } };

test("the lines about a Stack, its Workspace and its Updates have the same key", () => {
  expect(stackLogKeys("web")).toEqual({ stack: "web" });
  expect(workspaceLogKeys("web", workspace)).toEqual({ stack: "web", workspace: "web" });
  expect(updateLogKeys("web-1", update)).toEqual({ stack: "web", update: "web-1", run: "u1" });
});

test("the Stack is left out if the object has none, or is deleted", () => {
  expect(workspaceLogKeys("own", { metadata: { name: "own" } })).toEqual({ stack: undefined, workspace: "own" });
  expect(updateLogKeys("web-1", undefined)).toEqual({ stack: undefined, update: "web-1", run: undefined });
});
