/** The definitions of the kinds when an operator starts whose version brings others. */
import {
  crdHashAnnotation,
  crdRules,
  crdVersionAnnotation,
  customResourceDefinitions,
  version,
  type CustomResourceDefinition,
  type Rule,
} from "@pko/api";
import { resource, silentLogger, type Client, type KubeObject, type Resource } from "@pko/kube";
import { upgradeDefinitions } from "@pko/operator";
import { testNamespace, type ApiServer } from "@pko/testkit";
import { afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";

import { apiServerWithApi, patience, programs, stacks, updates, workspaces } from "../api/install.ts";
import { referenceDefinitions } from "./reference-definitions.ts";

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

afterEach(async () => {
  for (const { metadata } of wanted) await write({ annotations: unversioned }, {}, metadata.name);
  await upgrade();
});

const upgrade = (client: Client = server.client): Promise<void> => upgradeDefinitions({ client, log: silentLogger });

async function write(metadata: object, spec: object = {}, of = name): Promise<void> {
  await server.client.patch(definitions, { name: of }, { patch: { type: "merge", body: { metadata, spec } } });
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

test("objects of the Go operator are the same under its definitions and under ours", async () => {
  for (const { name: of, versions } of referenceDefinitions())
    await write({ annotations: unversioned }, { versions }, of);
  await using namespace = await testNamespace();
  const metadata = { name: "web", namespace: namespace.name };
  const condition = {
    type: "Ready",
    status: "True" as const,
    reason: "Succeeded",
    message: "",
    lastTransitionTime: time,
  };
  const objects: readonly (readonly [Resource, object, object])[] = [
    [
      programs,
      { program: { resources: { kept: { type: "pulumi:index:Stash", properties: { input: { deep: ["kept"] } } } } } },
      {
        observedGeneration: 1,
        artifact: { path: "web.tar.gz", url: "http://operator/web", revision: "1", lastUpdateTime: time },
      },
    ],
    [
      stacks,
      {
        spec: {
          stack: "org/web/dev",
          projectRepo: "https://example.com/web",
          branch: "main",
          resyncFrequencySeconds: 60,
        },
      },
      {
        observedGeneration: 1,
        conditions: [condition],
        lastUpdate: { generation: 1, name: "web-18beef", state: "succeeded", lastResyncTime: time },
        outputs: { url: "https://example.com", ports: [80, 443] },
        projectInfo: { name: "web", runtime: "go" },
      },
    ],
    [
      workspaces,
      {
        spec: {
          serviceAccountName: "pulumi",
          git: { url: "https://example.com/web", ref: "abc" },
          stacks: [{ name: "dev" }],
        },
      },
      {
        observedGeneration: 1,
        address: "web-workspace.default:50051",
        pulumiVersion: "v3.258.0",
        conditions: [condition],
      },
    ],
    [
      updates,
      { spec: { workspaceName: "web", stackName: "dev", type: "up", ttlAfterCompleted: "24h0m0s" } },
      { observedGeneration: 1, startTime: time, endTime: time, outputs: "web-stack-outputs", conditions: [condition] },
    ],
  ];
  const before = [];
  for (const [kind, content, status] of objects) {
    const { apiVersion } = kind;
    const held = { ...metadata, finalizers: ["finalizer.stack.pulumi.com"] };
    await server.client.create(kind, { apiVersion, kind: kind.kind, metadata: held, ...content });
    const change = { patch: { type: "merge", body: { status } }, subresource: "status" } as const;
    before.push(await server.client.patch(kind, metadata, change));
  }
  await upgrade(await rightsOf(crdRules));
  for (const [index, [kind]] of objects.entries()) {
    const { metadata: { uid, finalizers, generation } = {}, ...told } = before[index] ?? {};
    const kept = { metadata: { uid, finalizers, generation }, ...told };
    expect(await server.client.get(kind, metadata)).toMatchObject(kept);
    // Writes are checked against the new definition.
    const touched = { labels: { touched: "yes" }, finalizers: null };
    await server.client.patch(kind, metadata, { patch: { type: "merge", body: { metadata: touched } } });
  }
});

const time = "2026-01-01T00:00:00Z";

/** A client of someone who may do this and nothing else. */
async function rightsOf(rules: readonly Rule[]): Promise<Client> {
  const user = `upgrader-${crypto.randomUUID().slice(0, 8)}`;
  const apiGroup = "rbac.authorization.k8s.io";
  const items = [
    { apiVersion: `${apiGroup}/v1`, kind: "ClusterRole", metadata: { name: user }, rules },
    {
      apiVersion: `${apiGroup}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: user },
      roleRef: { apiGroup, kind: "ClusterRole", name: user },
      subjects: [{ apiGroup, kind: "User", name: user }],
    },
  ];
  await server.kubectl(["apply", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items }) });
  return await server.clientFor({ name: user });
}

test("an operator without the right goes on with what is there", async () => {
  await leaveOldDefinition(unversioned);
  await upgrade(await rightsOf([]));
  const { metadata } = await server.client.get(definitions, { name });
  expect(metadata.annotations?.[crdHashAnnotation]).toBeUndefined();
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
