/** The definitions of the kinds when an operator starts whose version brings others. */
import {
  crdHashAnnotation,
  crdVersionAnnotation,
  customResourceDefinitions,
  version,
  type CustomResourceDefinition,
} from "@pko/api";
import { resource, silentLogger, type KubeObject } from "@pko/kube";
import { upgradeDefinitions } from "@pko/operator";
import { testNamespace, type ApiServer } from "@pko/testkit";
import { afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";

import { apiServerWithApi, patience, programs } from "../api/install.ts";

setDefaultTimeout(patience);

const definitions = resource<CustomResourceDefinition & KubeObject>({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});

const name = "programs.pulumi.com";
const wanted = customResourceDefinitions();

let server: ApiServer;

beforeAll(async () => {
  server = await apiServerWithApi();
}, patience);

afterEach(async () => await write({ annotations: { [crdVersionAnnotation]: "0.0.1", [crdHashAnnotation]: null } }));
afterEach(async () => await upgrade());

const upgrade = (): Promise<void> => upgradeDefinitions({ client: server.client, log: silentLogger });

async function write(metadata: object, spec: object = {}): Promise<void> {
  await server.client.patch(definitions, { name }, { patch: { type: "merge", body: { metadata, spec } } });
}

/** As an older operator left it: no field of ours, no annotation. */
async function leaveOldDefinition(annotations: object): Promise<void> {
  const schema = { openAPIV3Schema: { type: "object", properties: { old: { type: "string" } } } };
  const versions = [{ name: "v1", served: true, storage: true, schema }];
  await write({ annotations }, { versions });
}

const unversioned = { [crdVersionAnnotation]: null, [crdHashAnnotation]: null };

test("a definition of the Go operator is replaced, and its objects stay", async () => {
  await using namespace = await testNamespace();
  const { apiVersion, kind } = programs;
  const metadata = { name: "kept", namespace: namespace.name };
  await server.client.create(programs, { apiVersion, kind, metadata, program: { outputs: { a: "b" } } });
  await leaveOldDefinition(unversioned);
  await upgrade();
  const { spec, metadata: upgraded } = await server.client.get(definitions, { name });
  const ours = wanted.find((each) => each.metadata.name === name);
  expect(upgraded.annotations).toMatchObject(ours?.metadata.annotations ?? {});
  expect(spec.versions[0]?.schema.openAPIV3Schema.properties?.["old"]).toBeUndefined();
  expect(spec.versions[0]?.schema.openAPIV3Schema.properties?.["program"]).toBeDefined();
  expect((await server.client.get(programs, metadata)).program).toEqual({ outputs: { a: "b" } });
});

test("a definition that is up to date is not written", async () => {
  await upgrade();
  const before = await server.client.get(definitions, { name });
  await upgrade();
  const after = await server.client.get(definitions, { name });
  expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion ?? "");
});

test("an operator that was rolled back leaves the newer definition", async () => {
  const [major] = version.split(".");
  const newer = { [crdVersionAnnotation]: `${Number(major) + 1}.0.0`, [crdHashAnnotation]: "other" };
  await leaveOldDefinition(newer);
  await upgrade();
  const { spec, metadata } = await server.client.get(definitions, { name });
  expect(metadata.annotations).toMatchObject(newer);
  expect(spec.versions[0]?.schema.openAPIV3Schema.properties?.["old"]).toBeDefined();
});
