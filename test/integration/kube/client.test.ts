/** The client with a real API server. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { connect as dial, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";

import {
  builtin,
  connect,
  ConnectionError,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isInvalid,
  isNotFound,
  kubeconfigCredentials,
  metadataOf,
  staticCredentials,
  type Client,
} from "@pko/kube";
import {
  aManifest,
  faultProxy,
  having,
  inNamespace,
  labeled,
  serviceAccountToken,
  sharedApiServer,
  testNamespace,
} from "@pko/testkit";
import type { TestNamespace } from "@pko/testkit";

// The first test that needs the API server waits until it has started, which takes long on a busy machine.
setDefaultTimeout(180_000);

let space: TestNamespace;
let client: Client;
let namespace: string;

beforeAll(async () => {
  space = await testNamespace();
  ({ client, name: namespace } = space);
});
afterAll(() => space.remove());

const configMap = (name: string, data: Record<string, string> = {}) =>
  aManifest(builtin.configMaps, name, inNamespace(namespace), having({ data }));
const ref = (name: string) => ({ name, namespace });
const failureOf = async (call: Promise<unknown>): Promise<unknown> => {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("the call did not fail");
};
const withCertificate = () => space.server.credentialsFor({ name: "admin", group: "system:masters" });
const applied = (name: string, data: Record<string, string>) => ({ ...configMap(name, data), metadata: ref(name) });

describe("discovery", () => {
  test("returns the versions of a kind, the preferred one first, and its resource name", async () => {
    expect(await client.discover({ group: "", kind: "Pod" })).toEqual([
      { apiVersion: "v1", kind: "Pod", plural: "pods", namespaced: true },
    ]);
    const scalers = await client.discover({ group: "autoscaling", kind: "HorizontalPodAutoscaler" });
    expect(scalers.map(({ apiVersion }) => apiVersion)).toEqual(["autoscaling/v2", "autoscaling/v1"]);
    const [roles] = await client.discover({ group: "rbac.authorization.k8s.io", kind: "ClusterRole" });
    expect(roles).toMatchObject({ plural: "clusterroles", namespaced: false });
    // Only a subresource of Deployments has this kind.
    expect(await client.discover({ group: "apps", kind: "Scale" })).toEqual([]);
    expect(await client.discover({ group: "nowhere.example.com", kind: "Pod" })).toEqual([]);
  });
});

describe("writing", () => {
  test("create, get, find, delete", async () => {
    const created = await client.create(builtin.configMaps, configMap("one", { k: "v" }));
    expect(await client.get(builtin.configMaps, ref("one"))).toEqual(created);
    expect(isAlreadyExists(await failureOf(client.create(builtin.configMaps, configMap("one"))))).toBe(true);
    await client.delete(builtin.configMaps, ref("one"));
    expect(await client.find(builtin.configMaps, ref("one"))).toBeUndefined();
    expect(isNotFound(await failureOf(client.delete(builtin.configMaps, ref("one"))))).toBe(true);
  });

  test("apply creates, changes and removes the fields of its manager", async () => {
    await client.apply(builtin.configMaps, applied("applied", { a: "1", b: "1" }), { fieldManager: "one" });
    await client.apply(builtin.configMaps, applied("applied", { c: "1" }), { fieldManager: "two" });
    const after = await client.apply(builtin.configMaps, applied("applied", { a: "2" }), { fieldManager: "one" });
    expect(after.data).toEqual({ a: "2", c: "1" });
  });

  test("apply takes fields from other managers unless force is false", async () => {
    await client.apply(builtin.configMaps, applied("contested", { a: "1" }), { fieldManager: "one" });
    const withoutForce = { fieldManager: "two", force: false };
    const error = await failureOf(client.apply(builtin.configMaps, applied("contested", { a: "2" }), withoutForce));
    expect(isConflict(error)).toBe(true);
    expect(error).toMatchObject({ causes: [{ field: ".data.a", reason: "FieldManagerConflict" }] });
    const taken = await client.apply(builtin.configMaps, applied("contested", { a: "2" }), { fieldManager: "two" });
    expect(taken.data).toEqual({ a: "2" });
  });

  test("a dry run is validated and not persisted", async () => {
    await client.create(builtin.configMaps, configMap("dry"), { dryRun: true });
    expect(await client.find(builtin.configMaps, ref("dry"))).toBeUndefined();
    const pod = aManifest(builtin.pods, "p", inNamespace(namespace), having({ spec: { containers: [] } }));
    const error = await failureOf(client.create(builtin.pods, pod, { dryRun: true }));
    expect(isInvalid(error)).toBe(true);
    expect(error).toMatchObject({ causes: [{ field: "spec.containers", message: "Required value" }] });
  });

  test("a dry run of a delete deletes nothing", async () => {
    await client.create(builtin.configMaps, configMap("kept"));
    await client.delete(builtin.configMaps, ref("kept"), { dryRun: true });
    expect(await client.find(builtin.configMaps, ref("kept"))).toBeDefined();
  });

  test("unknown fields are rejected with strict validation", async () => {
    const odd = { ...configMap("odd"), dtaa: {} };
    const error = await failureOf(client.create(builtin.configMaps, odd, { fieldValidation: "Strict", dryRun: true }));
    expect(String(error)).toContain('unknown field "dtaa"');
  });

  test("merge and JSON patches", async () => {
    await client.create(builtin.configMaps, configMap("patched", { a: "1", b: "1" }));
    const merge = { type: "merge", body: { data: { a: null, c: "1" } } } as const;
    expect((await client.patch(builtin.configMaps, ref("patched"), { patch: merge })).data).toEqual({ b: "1", c: "1" });
    const json = { type: "json", body: [{ op: "test", path: "/data/b", value: "2" }] } as const;
    expect(isInvalid(await failureOf(client.patch(builtin.configMaps, ref("patched"), { patch: json })))).toBe(true);
  });

  test("the status of an object is written separately", async () => {
    const spec = { containers: [{ name: "c", image: "i" }] };
    await client.create(builtin.pods, aManifest(builtin.pods, "web", inNamespace(namespace), having({ spec })));
    const status = { apiVersion: "v1", kind: "Pod", metadata: ref("web"), status: { message: "well" } };
    const pod = await client.apply(builtin.pods, status, { fieldManager: "kubelet", subresource: "status" });
    expect([pod.status?.message, pod.spec?.containers.length]).toEqual(["well", 1]);
  });

  test("a delete with the wrong UID or an older version is rejected", async () => {
    const { metadata } = await client.create(builtin.configMaps, configMap("with-precondition"));
    expect(
      isConflict(await failureOf(client.delete(builtin.configMaps, ref("with-precondition"), { uid: "other" }))),
    ).toBe(true);
    expect(
      isConflict(
        await failureOf(client.delete(builtin.configMaps, ref("with-precondition"), { resourceVersion: "1" })),
      ),
    ).toBe(true);
    await client.delete(builtin.configMaps, ref("with-precondition"), { uid: metadata.uid ?? "" });
    expect(await client.find(builtin.configMaps, ref("with-precondition"))).toBeUndefined();
  });
});

describe("reading", () => {
  test("lists are paginated, selected by label and joined", async () => {
    for (let i = 0; i < 7; i++) {
      const labels = labeled({ set: "paged" });
      await client.create(builtin.configMaps, aManifest(builtin.configMaps, `p${i}`, inNamespace(namespace), labels));
    }
    const list = await client.list(builtin.configMaps, { namespace, labelSelector: "set=paged", pageSize: 3 });
    expect(list.items.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(
      Array.from({ length: 7 }, (_, i) => `ConfigMap p${i}`),
    );
  });

  test("metadata only", async () => {
    await client.create(builtin.configMaps, configMap("fat", { big: "x".repeat(1000) }));
    const only = metadataOf(builtin.configMaps);
    const [got, list] = [await client.get(only, ref("fat")), await client.list(only, { namespace })];
    const listed = list.items.find(({ metadata }) => metadata.name === "fat");
    expect([got, listed].map((object) => JSON.stringify(object).includes("xxx"))).toEqual([false, false]);
    expect(listed?.metadata).toEqual(got.metadata);
    expect(listed).toMatchObject({ kind: "ConfigMap", apiVersion: "v1" });
  });

  test("a watch delivers events, and ends after the requested time", async () => {
    const { resourceVersion } = await client.list(builtin.configMaps, { namespace });
    await client.create(builtin.configMaps, configMap("watched"));
    await client.delete(builtin.configMaps, ref("watched"));
    const options = { namespace, resourceVersion, serverTimeoutSeconds: 3 };
    const events = await Array.fromAsync(client.watch(builtin.configMaps, options));
    expect(events.map(({ type }) => type).filter((type) => type !== "BOOKMARK")).toEqual(["ADDED", "DELETED"]);
  });

  test("a list whose continue token expires is read again", async () => {
    await using proxy = await faultProxy(space.server.credentials);
    proxy.on(({ query }) => (query.has("continue") ? { status: 410 } : undefined));
    const list = await connect(proxy.credentials).list(builtin.configMaps, { namespace, pageSize: 2 });
    expect(list.items.length).toBe((await client.list(builtin.configMaps, { namespace })).items.length);
  });
});

describe("identity", () => {
  test("a client certificate", async () => {
    const stranger = await space.server.clientFor({ name: "stranger" });
    const error = await failureOf(stranger.list(builtin.configMaps));
    expect(isForbidden(error)).toBe(true);
    expect(String(error)).toContain('User "stranger" cannot list resource "configmaps"');
  });

  test("a token of a service account", async () => {
    const account = ref("account");
    await client.create(builtin.serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata: account });
    const token = await serviceAccountToken(client, account);
    const { url, authority } = space.server;
    const bearer = connect(staticCredentials({ server: url, tls: { ca: authority.cert }, token }));
    expect(String(await failureOf(bearer.list(builtin.pods)))).toContain(`system:serviceaccount:${namespace}:account`);
  });

  test("a kubeconfig with an exec plugin", async () => {
    const { url, authority, kubeconfig } = await sharedApiServer();
    const account = ref("exec");
    await client.create(builtin.serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata: account });
    const token = await serviceAccountToken(client, account);
    const apiVersion = "client.authentication.k8s.io/v1";
    const credential = JSON.stringify({ apiVersion, kind: "ExecCredential", status: { token } });
    const path = join(kubeconfig, "..", "exec-kubeconfig");
    const data = Buffer.from(authority.cert).toString("base64");
    const content = {
      clusters: [{ name: "c", cluster: { server: url, "certificate-authority-data": data } }],
      users: [{ name: "u", user: { exec: { apiVersion, command: "echo", args: [credential] } } }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    };
    await writeFile(path, JSON.stringify(content));
    const error = await failureOf(connect(await kubeconfigCredentials(path)).list(builtin.pods));
    expect(String(error)).toContain(`system:serviceaccount:${namespace}:exec`);
    expect(Bun.inspect(error)).not.toContain(token);
  });

  test("a server with a certificate of another CA gets no request", async () => {
    await using proxy = await faultProxy(space.server.credentials);
    const untrusting = connect(staticCredentials({ server: proxy.url, tls: { ca: space.server.authority.cert } }));
    const error = await failureOf(untrusting.list(builtin.pods));
    expect(error).toBeInstanceOf(ConnectionError);
    expect(proxy.requests).toEqual([]);
  });

  test("a server whose certificate has another name is accepted if that is the configured server name", async () => {
    const { url, authority } = space.server;
    const { tls } = await (await withCertificate()).access();
    const named = (serverName: string) =>
      connect(staticCredentials({ server: url, tls: { ...tls, ca: authority.cert, serverName } }));
    expect((await named("kubernetes.default.svc").list(builtin.namespaces)).items.length).toBeGreaterThan(0);
    expect(await failureOf(named("other.example").list(builtin.namespaces))).toBeInstanceOf(ConnectionError);
  });
});

test("an HTTP proxy sees only the destination of a connection, not its contents", async () => {
  const tunnelled: string[] = [];
  const proxy = createServer();
  proxy.on("connect", (request, socket: Socket) => {
    tunnelled.push(request.url ?? "");
    const upstream = dial(Number(new URL(space.server.url).port), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [socket, upstream]) end.on("error", () => {});
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as AddressInfo;
  const behind = connect({ ...(await withCertificate()), proxy: `http://127.0.0.1:${port}` });
  expect((await behind.list(builtin.namespaces)).items.length).toBeGreaterThan(0);
  expect(tunnelled).toEqual([new URL(space.server.url).host]);
  proxy.closeAllConnections();
  proxy.close();
});

describe("network faults", () => {
  test("an apply whose response is lost is repeated without harm", async () => {
    await using proxy = await faultProxy(space.server.credentials);
    let lost = 0;
    proxy.on(() => (++lost === 1 ? { cut: "after" } : "pass"));
    const retrying = connect(proxy.credentials);
    await retrying.apply(builtin.configMaps, applied("lost", { a: "1" }), { fieldManager: "one" });
    expect(proxy.writes.map(({ status }) => status)).toEqual([201, 200]);
  });

  test("a create whose response is lost is not repeated", async () => {
    await using proxy = await faultProxy(space.server.credentials);
    proxy.on(() => ({ cut: "after" }));
    const retrying = connect(proxy.credentials);
    expect(await failureOf(retrying.create(builtin.configMaps, configMap("once")))).toBeInstanceOf(ConnectionError);
    expect(proxy.writes.length).toBe(1);
    expect(await client.find(builtin.configMaps, ref("once"))).toBeDefined();
  });

  test("a busy server gets no request before its Retry-After", async () => {
    await using proxy = await faultProxy(space.server.credentials);
    let refused = 0;
    proxy.on(() => (++refused === 1 ? { status: 429, retryAfterSeconds: 1 } : "pass"));
    const started = performance.now();
    await connect(proxy.credentials).create(builtin.configMaps, configMap("patient"));
    expect(performance.now() - started).toBeGreaterThanOrEqual(1000);
    expect(proxy.writes.map(({ status }) => status)).toEqual([undefined, 201]);
  });

  test("a dead pooled connection fails one attempt, not the call", async () => {
    await using proxy = await faultProxy(space.server.credentials);
    const pooled = connect(proxy.credentials);
    await pooled.list(builtin.namespaces);
    expect(proxy.freezeOpen()).toBe(1);
    expect((await pooled.list(builtin.namespaces)).items.length).toBeGreaterThan(0);
  });
});
