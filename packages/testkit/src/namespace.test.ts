import { expect, setDefaultTimeout, test } from "bun:test";

import { builtin, resource, type KubeObject } from "@pko/kube";

import { testNamespace } from "./namespace.ts";
import { waitFor } from "./wait-for.ts";

const crds = resource<KubeObject>({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});

// The first test that needs the API server waits until it has started, which takes long on a busy machine.
setDefaultTimeout(180_000);

test("removing a test namespace deletes its objects, even those with finalizers", async () => {
  const namespace = await testNamespace();
  const { client, name } = namespace;
  const metadata = { name: "held", namespace: name, finalizers: ["example.com/held"] };
  await client.create(builtin.configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata });
  await namespace.remove();
  expect(await client.find(builtin.namespaces, { name })).toBeUndefined();
  expect((await client.list(builtin.configMaps, { namespace: name })).items).toEqual([]);
});

test("an open watch reports that the objects of a removed test namespace are deleted", async () => {
  const namespace = await testNamespace();
  const { client, name } = namespace;
  const create = async (each: string): Promise<unknown> =>
    await client.create(builtin.configMaps, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: each, namespace: name },
    });
  const names = Array.from({ length: 20 }, (_, index) => `object-${index}`);
  await Promise.all(names.map(create));
  const { resourceVersion } = await client.list(builtin.configMaps, { namespace: name });
  const left = new Set([...names, "last"]);
  await create("last");
  for await (const event of client.watch(builtin.configMaps, { namespace: name, resourceVersion })) {
    // Now the watch is open. One that is opened during the removal may miss deletions.
    if (event.type === "ADDED") await namespace.remove();
    if (event.type === "DELETED") left.delete(event.object.metadata.name ?? "");
    if (left.size === 0) break;
  }
  expect([...left]).toEqual([]);
  // Lists come from the same cache as watches.
  expect((await client.list(builtin.configMaps, { namespace: name })).items).toEqual([]);
});

const port = { port: 80 };
const backend = { service: { name: "held", port: { number: 80 } } };

test.each([
  { apiVersion: "v1", kind: "Service", plural: "services", rest: { spec: { ports: [port] } } },
  { apiVersion: "v1", kind: "Endpoints", plural: "endpoints", rest: {} },
  { apiVersion: "v1", kind: "Event", plural: "events", rest: { involvedObject: {} } },
  { apiVersion: "coordination.k8s.io/v1", kind: "Lease", plural: "leases", rest: {} },
  {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    plural: "ingresses",
    rest: { spec: { defaultBackend: backend } },
  },
])("removing a test namespace deletes objects of the kind $kind", async ({ rest, ...names }) => {
  const namespace = await testNamespace();
  const { client, name } = namespace;
  const kind = { ...names, namespaced: true };
  const metadata = { name: "held", namespace: name };
  const involved = "involvedObject" in rest ? { involvedObject: { namespace: name } } : {};
  const { apiVersion } = names;
  await client.create(kind, { apiVersion, kind: names.kind, metadata, ...rest, ...involved });
  await namespace.remove();
  expect((await client.list(kind, { namespace: name })).items).toEqual([]);
});

test("removing a test namespace deletes objects of a kind that was added after another one was removed", async () => {
  await (await testNamespace()).remove();
  const names = { plural: "shelves", singular: "shelf", kind: "Shelf" };
  const schema = { openAPIV3Schema: { type: "object" } };
  const namespace = await testNamespace();
  const { client, name } = namespace;
  await client.create(crds, {
    apiVersion: crds.apiVersion,
    kind: crds.kind,
    metadata: { name: "shelves.example.com" },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names,
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  } as KubeObject);
  const shelves = resource({ apiVersion: "example.com/v1", kind: "Shelf", plural: "shelves", namespaced: true });
  const shelf = { apiVersion: "example.com/v1", kind: "Shelf", metadata: { name: "held", namespace: name } };
  await waitFor(() => client.create(shelves, shelf), { what: "the new kind to be served" });
  await namespace.remove();
  expect((await client.list(shelves, { namespace: name })).items).toEqual([]);
});
