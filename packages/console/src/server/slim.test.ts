import { expect, test } from "bun:test";

import type { WatchSubscription } from "../shared/contract.ts";
import { slim } from "./slim.ts";

const metadata = { name: "web", namespace: "a", uid: "u", resourceVersion: "7", deletionTimestamp: "t" };
const stack = {
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { ...metadata, annotations: { a: "b" }, labels: { a: "b" }, managedFields: [{ manager: "kubectl" }] },
  spec: { stack: "dev", config: { a: "b" }, secrets: { a: "[secret]" }, prerequisites: [{ name: "db" }], envRefs: {} },
  status: { conditions: [], outputs: { a: "b" }, drift: { resources: [] }, lastUpdate: {}, approval: {}, next: {} },
};
const watch = (more: Partial<WatchSubscription>): WatchSubscription => ({
  id: "s",
  kind: "watch",
  resource: "stacks",
  ...more,
});

test("a Stack of a list has what lists show", () => {
  expect(slim(stack, watch({ namespace: "a" }))).toEqual({
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata,
    spec: { stack: "dev", prerequisites: [{ name: "db" }], envRefs: {} },
    status: { conditions: [], lastUpdate: {}, approval: {}, next: {} },
  });
});

test("a Stack without spec and status stays one", () => {
  const { spec: _, status: __, ...bare } = stack;
  expect(slim(bare, watch({}))).toEqual({ apiVersion: "pulumi.com/v1", kind: "Stack", metadata });
});

test("a pod has its images and its status, and nothing that could be a secret", () => {
  const env = [{ name: "TOKEN", value: "canary" }];
  const containers = [{ name: "manager", image: "operator:3", env, args: ["--token=canary"] }];
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a", labels: { a: "b" }, annotations: { token: "canary" } },
    spec: { containers, initContainers: containers },
    status: { phase: "Running" },
  };
  expect(slim(pod, watch({ resource: "pods" }))).toEqual({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a", labels: { a: "b" } },
    spec: { containers: [{ name: "manager", image: "operator:3" }] },
    status: { phase: "Running" },
  });
});

test.each([
  ["a Stack with a page of its own", watch({ namespace: "a", name: "web" })],
  ["an object of another kind", watch({ resource: "updates" })],
])("%s is complete, except for its managed fields", (_, subscription) => {
  const { managedFields: __, ...rest } = stack.metadata;
  expect(slim(stack, subscription)).toEqual({ ...stack, metadata: rest });
});
