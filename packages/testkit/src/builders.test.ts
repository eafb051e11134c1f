import { expect, test } from "bun:test";

import { builtin } from "@pko/kube";

import {
  aManifest,
  annotated,
  anObject,
  atGeneration,
  deleting,
  finalizedBy,
  having,
  inNamespace,
} from "./builders.ts";
import { labeled, ownedBy } from "./builders.ts";

test("builds an object from its traits", () => {
  const owner = anObject(builtin.statefulSets, "web");
  const pod = anObject(
    builtin.pods,
    "web-0",
    inNamespace("a"),
    labeled({ app: "web" }),
    annotated({ note: "x" }),
    ownedBy(owner),
    finalizedBy("example.com/f"),
    atGeneration(3),
    deleting(),
    having({ spec: { containers: [] } }),
  );
  expect(pod).toEqual({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "web-0",
      namespace: "a",
      uid: "uid-of-web-0",
      resourceVersion: "1",
      generation: 3,
      creationTimestamp: "2030-01-01T00:00:00Z",
      labels: { app: "web" },
      annotations: { note: "x" },
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "StatefulSet",
          name: "web",
          uid: "uid-of-web",
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      finalizers: ["example.com/f"],
      deletionTimestamp: "2030-01-01T00:00:00Z",
    },
    spec: { containers: [] },
  });
});

test("a manifest contains only what a user writes", () => {
  const manifest = aManifest(builtin.configMaps, "c", inNamespace("a"), having({ data: { k: "v" } }));
  expect(manifest).toEqual({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "c", namespace: "a" },
    data: { k: "v" },
  });
});
