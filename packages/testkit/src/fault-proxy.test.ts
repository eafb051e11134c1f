import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";

import { builtin, connect, isNotFound, type Client } from "@pko/kube";

import { faultProxy, type FaultProxy } from "./fault-proxy.ts";
import { testNamespace, type TestNamespace } from "./namespace.ts";
import { patience } from "./patience.ts";
import { serviceAccountToken } from "./service-account-token.ts";
import { waitFor } from "./wait-for.ts";

// The first test that needs the API server waits until it has started, which takes long on a busy machine.
setDefaultTimeout(180_000);

let namespace: TestNamespace;
let proxy: FaultProxy;
/** Both make a single attempt. */
let client: Client;
let shortDeadline: Client;

beforeAll(async () => {
  namespace = await testNamespace();
});
afterAll(() => namespace.remove());
beforeEach(async () => {
  proxy = await faultProxy(namespace.server.credentials);
  client = connect(proxy.credentials, { ...patience, attempts: 1 });
  // Long enough for a request to reach the server on a busy machine.
  shortDeadline = connect(proxy.credentials, { attempts: 1, timeoutMs: 2000 });
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
const outcomeCode = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => "done",
    (error: unknown) => (error as { code?: string; status?: number }).code ?? (error as { status?: number }).status,
  );

test("requests are recorded with their meaning and their status", async () => {
  await create("recorded");
  expect(isNotFound(await client.get(builtin.pods, { name: "p", namespace: "a" }).catch((e: unknown) => e))).toBe(true);
  expect(proxy.requests).toMatchObject([
    { sequence: 1, verb: "create", resource: "configmaps", namespace: namespace.name, isWrite: true, status: 201 },
    { sequence: 2, verb: "get", resource: "pods", name: "p", isWrite: false, status: 404 },
  ]);
  expect(proxy.writes.map(({ body }) => JSON.parse(body) as unknown)).toEqual([configMap("recorded")]);
});

describe("a request", () => {
  test("is answered by the proxy instead of the server", async () => {
    proxy.on(() => ({ status: 503, retryAfterSeconds: 7 }));
    const error: unknown = await create("refused").catch((error: unknown) => error);
    expect(error).toMatchObject({ status: 503, reason: "ServiceUnavailable", retryAfterSeconds: 7 });
    expect(await exists("refused")).toBe(false);
  });

  test("is answered with a body instead of the server's", async () => {
    proxy.on(() => ({ response: Response.json({ ...configMap("invented"), data: { a: "1" } }) }));
    const found = await client.get(builtin.configMaps, { name: "invented", namespace: namespace.name });
    expect(found.data).toEqual({ a: "1" });
    expect(await exists("invented")).toBe(false);
  });

  test("is cut before the server receives it", async () => {
    proxy.on(() => ({ cut: "before" }));
    expect(await outcomeCode(create("cut-before"))).toBe("ECONNRESET");
    expect(await exists("cut-before")).toBe(false);
    expect(proxy.writes[0]?.status).toBeUndefined();
  });

  test("is processed, and its response is lost", async () => {
    proxy.on(() => ({ cut: "after" }));
    expect(await outcomeCode(create("cut-after"))).toBe("ECONNRESET");
    expect(await exists("cut-after")).toBe(true);
    expect(proxy.writes[0]?.status).toBe(201);
  });

  test("never gets a response, processed or not", async () => {
    const remove = proxy.on(() => ({ freeze: "before" }));
    expect(await outcomeCode(create("freeze-before", shortDeadline))).toBe("DEADLINE");
    remove();
    proxy.on(({ verb }) => (verb === "create" ? { freeze: "after" } : undefined));
    // Until the object exists, a deadline would also end the forwarded request.
    const stop = new AbortController();
    const created = outcomeCode(client.create(builtin.configMaps, configMap("freeze-after"), { signal: stop.signal }));
    await waitFor(() => proxy.writes.at(-1)?.status === 201);
    // The server's response has arrived at the proxy before that of a later request.
    const later = client.get(builtin.configMaps, { name: "freeze-after", namespace: namespace.name });
    expect(await Promise.race([created, later])).toMatchObject({ metadata: { name: "freeze-after" } });
    stop.abort();
    await created;
    expect(await exists("freeze-before")).toBe(false);
  });

  test("waits for its rule before and after it is processed", async () => {
    const seen: boolean[] = [];
    proxy.on(async () => {
      seen.push(await exists("slow"));
      return { afterwards: async () => void seen.push(await exists("slow")) };
    });
    await create("slow");
    expect(seen).toEqual([false, true]);
  });

  test("is handled by the newest rule that returns a verdict", async () => {
    proxy.on(() => ({ status: 500 }));
    proxy.on(({ verb }) => (verb === "create" ? "pass" : undefined));
    expect(await outcomeCode(create("picky"))).toBe("done");
    expect(await outcomeCode(client.get(builtin.configMaps, { name: "picky", namespace: namespace.name }))).toBe(500);
  });

  test("can be awaited", async () => {
    const arriving = proxy.nextRequest(({ verb }) => verb === "create");
    await Promise.all([create("expected"), arriving]);
    expect(await arriving).toMatchObject({ resource: "configmaps" });
  });
});

describe("connections", () => {
  const ping = (by = client): Promise<unknown> =>
    outcomeCode(by.list(builtin.configMaps, { namespace: namespace.name }));

  test("freeze while new ones work", async () => {
    expect(await ping()).toBe("done");
    expect(proxy.freezeOpen()).toBe(1);
    expect(await ping(shortDeadline)).toBe("DEADLINE");
    expect(await ping()).toBe("done");
  });

  test("all freeze, and continue after a thaw", async () => {
    proxy.freeze();
    expect(await ping(shortDeadline)).toBe("DEADLINE");
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
    const watching = outcomeCode(
      Array.fromAsync(client.watch(builtin.configMaps, { namespace: namespace.name, resourceVersion: "" })),
    );
    await proxy.nextRequest(({ verb }) => verb === "watch");
    await waitFor(() => proxy.requests[0]?.status === 200);
    proxy.cut();
    expect(await watching).toBe("ECONNRESET");
  });
});

test("a watch starts immediately even without events", async () => {
  const options = { namespace: namespace.name, resourceVersion: "", serverTimeoutSeconds: 15 };
  const started = performance.now();
  // The response must start before the watch ends.
  const events = client.watch(builtin.configMaps, {
    ...options,
    timeoutMs: 14_000,
    fieldSelector: "metadata.name=none",
  });
  await Array.fromAsync(events);
  expect(performance.now() - started).toBeGreaterThan(14_500);
  expect(proxy.requests.length).toBe(1);
});

test("a single event of a watch can be dropped", async () => {
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

test("a delayed event delays the events after it", async () => {
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
