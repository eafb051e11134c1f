import { expect, test } from "bun:test";

import { rewriteCopy } from "./idle.ts";

test("a copy has its own names and owners, and no server-set metadata", () => {
  const workspace = {
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Workspace",
    metadata: {
      name: "template",
      namespace: "bench",
      uid: "own-uid",
      resourceVersion: "7",
      generation: 3,
      labels: { "pulumi.com/stack-name": "template" },
      ownerReferences: [{ apiVersion: "pulumi.com/v1", kind: "Stack", name: "template", uid: "old-uid" }],
    },
    spec: { stacks: [{ name: "template" }] },
    status: { observedGeneration: 1 },
  };
  expect(
    rewriteCopy(
      workspace,
      new Map([
        ["template", "idle-1"],
        ["old-uid", "new-uid"],
      ]),
    ),
  ).toEqual({
    ...workspace,
    metadata: {
      name: "idle-1",
      namespace: "bench",
      labels: { "pulumi.com/stack-name": "idle-1" },
      ownerReferences: [{ apiVersion: "pulumi.com/v1", kind: "Stack", name: "idle-1", uid: "new-uid" }],
    } as never,
    spec: { stacks: [{ name: "idle-1" }] },
  });
});

test("a copy of an object that was changed since it was created is up to date, too", () => {
  const metadata = { name: "template", generation: 2 };
  const status = { observedGeneration: 2, lastUpdate: { generation: 2, failures: 2 } };
  const copy = rewriteCopy({ apiVersion: "pulumi.com/v1", kind: "Stack", metadata, status }, new Map());
  expect(copy.status).toEqual({ observedGeneration: 1, lastUpdate: { generation: 1, failures: 2 } });
});
