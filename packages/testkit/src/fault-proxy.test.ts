import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";

import { builtin, connect, isNotFound, type Client } from "@pko/kube";

import { faultProxy, type FaultProxy } from "./fault-proxy.ts";
import { testNamespace, type TestNamespace } from "./namespace.ts";
import { serviceAccountToken } from "./service-account-token.ts";
import { waitFor } from "./wait-for.ts";

// The first test of a run that needs the API server waits for its start, on a machine that may be busy.
setDefaultTimeout(60_000);

let namespace: TestNamespace;
let proxy: FaultProxy;
/** Both try once. */
let client: Client;
let impatient: Client;

beforeAll(async () => {
  namespace = await testNamespace();
});
afterAll(() => namespace.remove());
beforeEach(async () => {
  proxy = await faultProxy(namespace.server.credentials);
  client = connect(proxy.credentials, { attempts: 1 });
  impatient = connect(proxy.credentials, { attempts: 1, timeoutMs: 300 });
});
afterEach(() => proxy.close());

const configMap = (name: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: namespace.name },
});
const create = (name: string, by = client): Promise<unknown> => by.create(builtin.configMaps, configMap(name));
const exists = async (name: string): Promise<boolean> =>
  (await namespace.client.find(builtin.configMaps, { name, namespace: namespace.name })) !== undefined;
const codeOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => "done",
    (error: unknown) => (error as { code?: string; status?: number }).code ?? (error as { status?: number }).status,
  );

test("what passes is recorded, with what it meant and what became of it", async () => {
  await create("recorded");
  expect(isNotFound(await client.get(builtin.pods, { name: "p", namespace: "a" }).catch((e: unknown) => e))).toBe(true);
  expect(proxy.requests).toMatchObject([
    { sequence: 1, verb: "create", resource: "configmaps", namespace: namespace.name, isWrite: true, status: 201 },
    { sequence: 2, verb: "get", resource: "pods", name: "p", isWrite: false, status: 404 },
  ]);
  expect(proxy.writes.map(({ body }) => JSON.parse(body) as unknown)).toEqual([configMap("recorded")]);
});

describe("a request", () => {
  test("is answered in the server's stead", async () => {
    proxy.on(() => ({ status: 503, retryAfterSeconds: 7 }));
    const error: unknown = await create("refused").catch((error: unknown) => error);
    expect(error).toMatchObject({ status: 503, reason: "ServiceUnavailable", retryAfterSeconds: 7 });
    expect(await exists("refused")).toBe(false);
  });

  test("is cut before the server gets it", async () => {
    proxy.on(() => ({ cut: "before" }));
    expect(await codeOf(create("cut-before"))).toBe("ECONNRESET");
    expect(await exists("cut-before")).toBe(false);
    expect(proxy.writes[0]?.status).toBeUndefined();
  });

  test("is done, and its answer lost", async () => {
    proxy.on(() => ({ cut: "after" }));
    expect(await codeOf(create("cut-after"))).toBe("ECONNRESET");
    expect(await exists("cut-after")).toBe(true);
    expect(proxy.writes[0]?.status).toBe(201);
  });

  test("is never answered, done or not", async () => {
    const remove = proxy.on(() => ({ freeze: "before" }));
    expect(await codeOf(create("freeze-before", impatient))).toBe("DEADLINE");
    remove();
    proxy.on(() => ({ freeze: "after" }));
    expect(await codeOf(create("freeze-after", impatient))).toBe("DEADLINE");
    expect(await exists("freeze-before")).toBe(false);
    expect(await waitFor(() => exists("freeze-after"))).toBe(true);
  });

  test("waits for its rule, before and after it is done", async () => {
    const seen: boolean[] = [];
    proxy.on(async () => {
      seen.push(await exists("slow"));
      return { afterwards: async () => void seen.push(await exists("slow")) };
    });
    await create("slow");
    expect(seen).toEqual([false, true]);
  });

  test("meets the newest rule that cares", async () => {
    proxy.on(() => ({ status: 500 }));
    proxy.on(({ verb }) => (verb === "create" ? "pass" : undefined));
    expect(await codeOf(create("picky"))).toBe("done");
    expect(await codeOf(client.get(builtin.configMaps, { name: "picky", namespace: namespace.name }))).toBe(500);
  });

  test("can be waited for", async () => {
    const arriving = proxy.nextRequest(({ verb }) => verb === "create");
    await Promise.all([create("expected"), arriving]);
    expect(await arriving).toMatchObject({ resource: "configmaps" });
  });
});

describe("connections", () => {
  const ping = (by = client): Promise<unknown> => codeOf(by.list(builtin.configMaps, { namespace: namespace.name }));

  test("fall silent while new ones work", async () => {
    expect(await ping()).toBe("done");
    expect(proxy.freezeOpen()).toBe(1);
    expect(await ping(impatient)).toBe("DEADLINE");
    expect(await ping()).toBe("done");
  });

  test("fall silent, all of them, and go on as if nothing had been", async () => {
    proxy.freeze();
    expect(await ping(impatient)).toBe("DEADLINE");
    const waiting = ping();
    proxy.thaw();
    expect(await waiting).toBe("done");
  });

  test("are refused", async () => {
    await proxy.refuse();
    expect(await ping()).toBe("ECONNREFUSED");
    await proxy.accept();
    expect(await ping()).toBe("done");
  });

  test("are cut in the middle of a watch", async () => {
    const watching = codeOf(
      Array.fromAsync(client.watch(builtin.configMaps, { namespace: namespace.name, resourceVersion: "" })),
    );
    await proxy.nextRequest(({ verb }) => verb === "watch");
    await waitFor(() => proxy.requests[0]?.status === 200);
    proxy.cut();
    expect(await watching).toBe("ECONNRESET");
  });
});

test("a watch begins at once, though nothing happens", async () => {
  const options = { namespace: namespace.name, resourceVersion: "", serverTimeoutSeconds: 3 };
  const started = performance.now();
  // It must begin before it ends.
  const events = client.watch(builtin.configMaps, { ...options, timeoutMs: 2000, fieldSelector: "metadata.name=none" });
  await Array.fromAsync(events);
  expect(performance.now() - started).toBeGreaterThan(2500);
  expect(proxy.requests.length).toBe(1);
});

test("a chosen event of a watch is lost", async () => {
  const removeRule = proxy.onEvent(({ object }) => (object.metadata.name === "lost" ? "drop" : "pass"));
  const { resourceVersion } = await client.list(builtin.configMaps, { namespace: namespace.name });
  const stop = new AbortController();
  const names: (string | undefined)[] = [];
  const watching = (async () => {
    const options = { namespace: namespace.name, resourceVersion, signal: stop.signal };
    for await (const event of client.watch(builtin.configMaps, options)) {
      if (event.type !== "BOOKMARK") names.push(event.object.metadata.name);
    }
  })().catch(() => {});
  await create("lost");
  await create("found");
  await waitFor(() => names.includes("found"));
  removeRule();
  await create("lost-no-more");
  await waitFor(() => names.includes("lost-no-more"));
  expect(names).toEqual(["found", "lost-no-more"]);
  stop.abort();
  await watching;
});

test("an event that is late keeps those behind it waiting", async () => {
  const late = Promise.withResolvers<"pass">();
  proxy.onEvent(({ object }) => (object.metadata.name === "late" ? late.promise : "pass"));
  const { resourceVersion } = await client.list(builtin.configMaps, { namespace: namespace.name });
  const stop = new AbortController();
  const names: (string | undefined)[] = [];
  const watching = (async () => {
    const options = { namespace: namespace.name, resourceVersion, signal: stop.signal };
    for await (const event of client.watch(builtin.configMaps, options)) {
      if (event.type !== "BOOKMARK") names.push(event.object.metadata.name);
    }
  })().catch(() => {});
  await create("late");
  await create("behind");
  expect(await exists("behind")).toBe(true);
  expect(names).toEqual([]);
  late.resolve("pass");
  await waitFor(() => names.includes("behind"));
  expect(names).toEqual(["late", "behind"]);
  stop.abort();
  await watching;
});

test("a client with a token acts as that token's owner", async () => {
  const account = { name: "robot", namespace: namespace.name };
  await namespace.client.create(builtin.serviceAccounts, {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: account,
  });
  const token = await serviceAccountToken(namespace.client, account);
  const robot = connect({ ...proxy.credentials, access: async () => ({ tls: { ca: proxy.ca }, token }) });
  const error = await robot.list(builtin.configMaps, { namespace: namespace.name }).catch(String);
  expect(error).toContain(`User "system:serviceaccount:${namespace.name}:robot" cannot list resource`);
});
