/** The operator upgrades its CRDs when it starts. */
import {
  crdHashAnnotation,
  crdVersionAnnotation,
  customResourceDefinitions,
  version,
  type CustomResourceDefinition,
} from "@pko/api";
import { crdRules, type Rule } from "@pko/install";
import { resource, silentLogger, type Client, type KubeObject, type Resource } from "@pko/kube";
import { upgradeCrds } from "@pko/operator";
import { testNamespace, waitFor, type ApiServer } from "@pko/testkit";
import { afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";

import { apiServerWithApi, testTimeoutMs, programs, stacks, updates, workspaces } from "../api/install.ts";
import { referenceCrds } from "./reference-crds.ts";

setDefaultTimeout(testTimeoutMs);

const crds = resource<CustomResourceDefinition & KubeObject>({
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
}, testTimeoutMs);

afterEach(async () => {
  for (const { metadata } of wanted) await patchCrd({ annotations: unversioned }, {}, metadata.name);
  await upgrade();
});

const upgrade = (client: Client = server.client): Promise<void> => upgradeCrds({ client, log: silentLogger });

async function patchCrd(metadata: object, spec: object = {}, crd = name): Promise<void> {
  await server.client.patch(crds, { name: crd }, { patch: { type: "merge", body: { metadata, spec } } });
}

/** Replaces the CRD by one of an older operator, without our fields. */
async function writeOldCrd(annotations: object): Promise<void> {
  const schema = { openAPIV3Schema: { type: "object", properties: { old: { type: "string" } } } };
  const versions = [{ name: "v1", served: true, storage: true, schema }];
  await patchCrd({ annotations }, { versions });
}

const unversioned = { [crdVersionAnnotation]: null, [crdHashAnnotation]: null };

test("replaces a CRD of the Go operator and keeps its objects", async () => {
  await using namespace = await testNamespace();
  const { apiVersion, kind } = programs;
  const metadata = { name: "kept", namespace: namespace.name };
  await server.client.create(programs, { apiVersion, kind, metadata, program: { outputs: { a: "b" } } });
  await writeOldCrd(unversioned);
  await upgrade();
  const { spec, metadata: upgraded } = await server.client.get(crds, { name });
  const ours = wanted.find((each) => each.metadata.name === name);
  expect(upgraded.annotations).toMatchObject(ours?.metadata.annotations ?? {});
  expect(spec.versions[0]?.schema.openAPIV3Schema.properties?.["old"]).toBeUndefined();
  expect(spec.versions[0]?.schema.openAPIV3Schema.properties?.["program"]).toBeDefined();
  // The API server may serve the old schema for a moment.
  await waitFor(async () => {
    expect((await server.client.get(programs, metadata)).program).toEqual({ outputs: { a: "b" } });
    return true;
  });
});

test("keeps objects of the Go operator unchanged when its CRDs are replaced by ours", async () => {
  for (const { name: crd, versions } of referenceCrds())
    await patchCrd({ annotations: unversioned }, { versions }, crd);
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
    const withFinalizer = { ...metadata, finalizers: ["finalizer.stack.pulumi.com"] };
    await server.client.create(kind, { apiVersion, kind: kind.kind, metadata: withFinalizer, ...content });
    const change = { patch: { type: "merge", body: { status } }, subresource: "status" } as const;
    before.push(await server.client.patch(kind, metadata, change));
  }
  await upgrade(await clientWithRules(crdRules));
  for (const [index, [kind]] of objects.entries()) {
    const { metadata: { uid, finalizers, generation } = {}, ...rest } = before[index] ?? {};
    const kept = { metadata: { uid, finalizers, generation }, ...rest };
    expect(await server.client.get(kind, metadata)).toMatchObject(kept);
    // The API server validates this write with the new CRD.
    const touched = { labels: { touched: "yes" }, finalizers: null };
    await server.client.patch(kind, metadata, { patch: { type: "merge", body: { metadata: touched } } });
  }
});

const time = "2026-01-01T00:00:00Z";

/** A client of a user with only these permissions. */
async function clientWithRules(rules: readonly Rule[]): Promise<Client> {
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

test("keeps the CRDs if it is not permitted to change them", async () => {
  await writeOldCrd(unversioned);
  await upgrade(await clientWithRules([]));
  const { metadata } = await server.client.get(crds, { name });
  expect(metadata.annotations?.[crdHashAnnotation]).toBeUndefined();
});

test("does not write a CRD that is up to date", async () => {
  await upgrade();
  const before = await server.client.get(crds, { name });
  await upgrade();
  const after = await server.client.get(crds, { name });
  expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion ?? "");
});

test("keeps a newer CRD after a rollback", async () => {
  const [major] = version.split(".");
  const newer = { [crdVersionAnnotation]: `${Number(major) + 1}.0.0`, [crdHashAnnotation]: "other" };
  await writeOldCrd(newer);
  await upgrade();
  const { spec, metadata } = await server.client.get(crds, { name });
  expect(metadata.annotations).toMatchObject(newer);
  expect(spec.versions[0]?.schema.openAPIV3Schema.properties?.["old"]).toBeDefined();
});
