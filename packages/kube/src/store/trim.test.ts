import { expect, test } from "bun:test";

import type { KubeObject } from "../resource.ts";
import { trimmed } from "./trim.ts";

test("drops managed fields and the last applied manifest, and nothing else", () => {
  const annotations = { keep: "me", "kubectl.kubernetes.io/last-applied-configuration": "{}" };
  const metadata = { name: "x", managedFields: [{ manager: "m" }], annotations };
  const object: KubeObject & { data: object } = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { a: "b" } };
  expect(trimmed(object)).toEqual({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "x", annotations: { keep: "me" } },
    data: { a: "b" },
  });
});
