import { expect, setDefaultTimeout, test } from "bun:test";

import { builtin } from "@pko/kube";

import { testNamespace } from "./namespace.ts";

// The first test that needs the API server waits until it has started, which takes long on a busy machine.
setDefaultTimeout(60_000);

test("removing a test namespace deletes its objects, even those with finalizers", async () => {
  const namespace = await testNamespace();
  const { client, name } = namespace;
  const metadata = { name: "held", namespace: name, finalizers: ["example.com/held"] };
  await client.create(builtin.configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata });
  await namespace.remove();
  expect(await client.find(builtin.namespaces, { name })).toBeUndefined();
  expect((await client.list(builtin.configMaps, { namespace: name })).items).toEqual([]);
});
