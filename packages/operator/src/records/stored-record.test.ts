import { recordSizeAnnotation } from "@pko/api";
import type { KubeObject } from "@pko/kube";
import { describe, expect, test } from "bun:test";

import { storedRecord, trimRecord } from "./stored-record.ts";

const owner = {
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  name: "web-1",
  uid: "update",
  controller: true,
};

const object = (metadata: Partial<KubeObject["metadata"]> = {}): KubeObject => ({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "UpdateRecord",
  metadata: {
    name: "web-1",
    namespace: "default",
    uid: "record",
    creationTimestamp: "2026-01-01T00:00:00Z",
    labels: { team: "web" },
    annotations: { [recordSizeAnnotation]: "1234", other: "text" },
    ownerReferences: [owner],
    ...metadata,
  },
});

test("a record is known by its size and its Update", () => {
  expect(storedRecord(object())).toEqual({
    name: "web-1",
    namespace: "default",
    uid: "record",
    createdAt: "2026-01-01T00:00:00Z",
    bytes: 1234,
    updateUid: "update",
  });
});

describe("a record is not counted", () => {
  const cases: readonly (readonly [string, Partial<KubeObject["metadata"]>])[] = [
    ["without a size", { annotations: {} }],
    ["with a size that is not a number", { annotations: { [recordSizeAnnotation]: "large" } }],
    ["with a negative size", { annotations: { [recordSizeAnnotation]: "-1" } }],
    ["that is being deleted", { deletionTimestamp: "2026-01-02T00:00:00Z" }],
    ["without an Update", { ownerReferences: [] }],
    ["of which an Update is not the controller", { ownerReferences: [{ ...owner, controller: false }] }],
  ];
  for (const [what, metadata] of cases) {
    test(what, () => {
      expect(storedRecord(object(metadata))).toBeUndefined();
      expect(storedRecord(trimRecord(object(metadata)))).toBeUndefined();
    });
  }
});

test("memory holds only what the budget needs", () => {
  const { metadata } = trimRecord(object());
  expect(metadata.labels).toBeUndefined();
  expect(metadata.annotations).toEqual({ [recordSizeAnnotation]: "1234" });
  expect(storedRecord(trimRecord(object()))).toEqual(storedRecord(object()));
});
