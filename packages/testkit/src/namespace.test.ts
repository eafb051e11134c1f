import { expect, setDefaultTimeout, test } from "bun:test";

import { builtin } from "@pko/kube";

import { testNamespace } from "./namespace.ts";

// The first test of a run that needs the API server waits for its start, on a machine that may be busy.
setDefaultTimeout(60_000);

test("a test's namespace goes with all it holds, finalizers or not", async () => {
  const namespace = await testNamespace();
  const { client, name } = namespace;
  const metadata = { name: "held", namespace: name, finalizers: ["example.com/held"] };
  await client.create(builtin.configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata });
  await namespace.remove();
  expect(await client.find(builtin.namespaces, { name })).toBeUndefined();
  expect((await client.list(builtin.configMaps, { namespace: name })).items).toEqual([]);
});
