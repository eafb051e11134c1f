/** The client with a scripted transport and a manual clock: what it sends, and how it handles failures. */
import { describe, expect, test } from "bun:test";

import { builtin } from "../builtin.ts";
import type { Client } from "../client.ts";
import { connect, type ConnectOptions } from "./connection.ts";
import type { Credentials } from "./credentials.ts";
import { asError } from "../requests/deadline.ts";
import {
  ConnectionError,
  isConflict,
  isExpired,
  isForbidden,
  isInvalid,
  isNotFound,
  isUnauthorized,
} from "../errors.ts";
import type { HttpRequest } from "../requests/http.ts";
import type { ApiResponse } from "../requests/request.ts";
import { manualClock, type ManualClock } from "../../manual-clock.ts";

type Answer = (request: HttpRequest) => Response | Promise<Response>;

const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x", namespace: "a" } };
const ref = { name: "x", namespace: "a" };

const json =
  (body: object, status = 200): Answer =>
  () =>
    Response.json(body, { status });
const ok = json(configMap);
const failure = (code: number, details: object = {}): Answer =>
  json({ kind: "Status", code, reason: "Reason", message: "the server's message", ...details }, code);
const tooMany: Answer = () => new Response("slow down", { status: 429, headers: { "retry-after": "1" } });
const unavailable: Answer = () => new Response("", { status: 503, headers: { "retry-after": "1" } });
const cut =
  (code = "ECONNRESET"): Answer =>
  () =>
    Promise.reject(Object.assign(new Error("cut"), { code }));
const silence: Answer = ({ signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(asError(signal.reason))));
const partialBody: Answer = ({ signal }) =>
  new Response(
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"kind":'));
        signal.addEventListener("abort", () => controller.error(signal.reason));
      },
    }),
  );

interface Rig {
  readonly client: Client;
  readonly clock: ManualClock;
  readonly sent: HttpRequest[];
  readonly refreshes: (boolean | undefined)[];
}

/** Answers in this order, repeating the last one. */
function rig(answers: readonly Answer[], options: ConnectOptions = {}): Rig {
  const clock = manualClock();
  const sent: HttpRequest[] = [];
  const refreshes: (boolean | undefined)[] = [];
  const credentials: Credentials = {
    server: "https://api:6443",
    async access(refresh) {
      refreshes.push(refresh);
      return { token: refresh ? "new-token" : "old-token", tls: { ca: "CA" } };
    },
  };
  const client = connect(credentials, {
    clock,
    random: () => 1,
    async transport(request) {
      const answer = answers[Math.min(sent.push(request), answers.length) - 1];
      return (await answer?.(request)) ?? Response.error();
    },
    ...options,
  });
  return { client, clock, sent, refreshes };
}

/** Lets the call run for up to a minute on the manual clock and returns its value or its error. */
async function outcome<T>(clock: ManualClock, call: Promise<T>): Promise<unknown> {
  const settled: Promise<unknown> = call.catch((error: unknown) => error);
  await clock.advance(60_000);
  return await settled;
}

const methodAndPath = ({ method, url }: HttpRequest): string => `${method} ${url.replace("https://api:6443", "")}`;
const bodyOf = (request: HttpRequest | undefined): unknown => JSON.parse(request?.body ?? "null") as unknown;

describe("requests", () => {
  const at = "/api/v1/namespaces/a/configmaps";
  const cases: [string, (client: Client) => Promise<unknown>, string, { type?: string; body?: object }][] = [
    ["get", (c) => c.get(builtin.configMaps, ref), `GET ${at}/x`, {}],
    ["create", (c) => c.create(builtin.configMaps, configMap), `POST ${at}`, { body: configMap }],
    [
      "a dry run, strict about unknown fields",
      (c) => c.create(builtin.configMaps, configMap, { dryRun: true, fieldValidation: "Strict" }),
      `POST ${at}?dryRun=All&fieldValidation=Strict`,
      { body: configMap },
    ],
    [
      "apply",
      (c) => c.apply(builtin.configMaps, configMap, { fieldManager: "me" }),
      `PATCH ${at}/x?fieldManager=me&force=true`,
      { type: "application/apply-patch+yaml", body: configMap },
    ],
    [
      "apply of the status, without taking fields from other managers",
      (c) => c.apply(builtin.configMaps, configMap, { fieldManager: "me", force: false, subresource: "status" }),
      `PATCH ${at}/x/status?fieldManager=me&force=false`,
      { type: "application/apply-patch+yaml", body: configMap },
    ],
    [
      "a merge patch",
      (c) => c.patch(builtin.configMaps, ref, { patch: { type: "merge", body: { data: null } } }),
      `PATCH ${at}/x`,
      { type: "application/merge-patch+json", body: { data: null } },
    ],
    [
      "a JSON patch",
      (c) => c.patch(builtin.configMaps, ref, { patch: { type: "json", body: [{ op: "remove", path: "/data" }] } }),
      `PATCH ${at}/x`,
      { type: "application/json-patch+json", body: [{ op: "remove", path: "/data" }] },
    ],
    [
      "delete with preconditions",
      (c) => c.delete(builtin.configMaps, ref, { uid: "u", propagationPolicy: "Foreground" }),
      `DELETE ${at}/x`,
      {
        body: {
          apiVersion: "v1",
          kind: "DeleteOptions",
          preconditions: { uid: "u" },
          propagationPolicy: "Foreground",
        },
      },
    ],
  ];
  for (const [name, call, expected, { type = "application/json", body }] of cases) {
    test(name, async () => {
      const { client, sent } = rig([ok]);
      await call(client);
      expect(sent.map(methodAndPath)).toEqual([expected]);
      expect(bodyOf(sent[0])).toEqual(body ?? null);
      expect(sent[0]?.headers["content-type"]).toBe(body ? type : undefined);
      expect(sent[0]?.headers["authorization"]).toBe("Bearer old-token");
    });
  }

  test("an object without a required namespace is not sent", async () => {
    const { client, clock, sent } = rig([ok]);
    const withoutNamespace = { ...configMap, metadata: { name: "x" } };
    expect(String(await outcome(clock, client.create(builtin.configMaps, withoutNamespace)))).toContain(
      "needs a namespace",
    );
    expect(sent).toEqual([]);
  });
});

describe("which calls are repeated after a broken connection", () => {
  const jsonPatch = { type: "json", body: [] } as const;
  const cases: [string, (client: Client) => Promise<unknown>, boolean][] = [
    ["get", (c) => c.get(builtin.configMaps, ref), true],
    ["list", (c) => c.list(builtin.configMaps), true],
    ["apply", (c) => c.apply(builtin.configMaps, configMap, { fieldManager: "me" }), true],
    ["merge patch", (c) => c.patch(builtin.configMaps, ref, { patch: { type: "merge", body: {} } }), true],
    ["delete by UID", (c) => c.delete(builtin.configMaps, ref, { uid: "u" }), true],
    ["dry run of a create", (c) => c.create(builtin.configMaps, configMap, { dryRun: true }), true],
    ["create", (c) => c.create(builtin.configMaps, configMap), false],
    ["JSON patch", (c) => c.patch(builtin.configMaps, ref, { patch: jsonPatch }), false],
    ["delete by name", (c) => c.delete(builtin.configMaps, ref), false],
  ];
  for (const [name, call, expected] of cases) {
    test(`${name}: ${expected ? "yes" : "no"}`, async () => {
      const { client, clock, sent } = rig([cut(), ok]);
      const result = await outcome(clock, call(client));
      expect(sent.length).toBe(expected ? 2 : 1);
      if (!expected) expect(result).toBeInstanceOf(ConnectionError);
    });
  }

  test("a second attempt uses a fresh connection, and so does a call that must not be repeated", async () => {
    const { client, clock, sent } = rig([cut(), ok]);
    await outcome(clock, client.get(builtin.configMaps, ref));
    await outcome(clock, client.create(builtin.configMaps, configMap));
    expect(sent.map(({ freshConnection }) => freshConnection)).toEqual([false, true, true]);
  });

  for (const [name, answer] of [
    ["the connection was refused", cut("ECONNREFUSED")],
    ["the server sends 429 with a Retry-After", tooMany],
    ["the server sends 503 with a Retry-After", unavailable],
  ] as const) {
    test(`create, when ${name}: yes`, async () => {
      const { client, clock, sent } = rig([answer, ok]);
      expect(await outcome(clock, client.create(builtin.configMaps, configMap))).toEqual(configMap);
      expect(sent.length).toBe(2);
    });
  }
});

describe("deadlines", () => {
  test("a silent connection is abandoned in time for another attempt", async () => {
    const { client, clock, sent } = rig([silence, ok]);
    const start = clock.now();
    let took = 0;
    const call = client.get(builtin.configMaps, ref).finally(() => (took = clock.now() - start));
    expect(await outcome(clock, call)).toEqual(configMap);
    expect([sent.length, took]).toEqual([2, 10_100]);
  });

  test("a connection that falls silent in the middle of a response is abandoned too", async () => {
    const { client, clock, sent } = rig([partialBody, ok]);
    expect(await outcome(clock, client.get(builtin.configMaps, ref))).toEqual(configMap);
    expect(sent.length).toBe(2);
  });

  test("a create without a response is sent once and fails", async () => {
    const { client, clock, sent } = rig([silence]);
    const error = await outcome(clock, client.create(builtin.configMaps, configMap));
    expect(error).toMatchObject({ name: "ConnectionError", code: "DEADLINE" });
    expect(sent.length).toBe(1);
  });

  test("all attempts together end before the call's deadline", async () => {
    const { client, clock } = rig([silence]);
    const start = clock.now();
    let took = Infinity;
    const call = client.get(builtin.configMaps, ref).finally(() => (took = clock.now() - start));
    expect(await outcome(clock, call)).toBeInstanceOf(ConnectionError);
    expect(took).toBeLessThanOrEqual(30_000);
  });

  for (const step of [3_600_000, -3_600_000]) {
    test(`setting the wall clock by ${step} ms does not change the deadline`, async () => {
      const { client, clock } = rig([silence]);
      const start = clock.monotonic();
      let took = Infinity;
      const call = client.get(builtin.configMaps, ref).finally(() => (took = clock.monotonic() - start));
      clock.after(5000, () => clock.stepWallClock(step));
      expect(await outcome(clock, call)).toBeInstanceOf(ConnectionError);
      expect(took).toBeGreaterThan(20_000);
      expect(took).toBeLessThanOrEqual(30_000);
    });
  }

  test("a call can have a shorter deadline", async () => {
    const { client, clock, sent } = rig([silence]);
    const call = client.get(builtin.configMaps, ref, { timeoutMs: 500 }).catch((error: unknown) => error);
    await clock.advance(500);
    expect(await call).toBeInstanceOf(ConnectionError);
    expect(sent.length).toBe(1);
  });

  test("an abort rejects immediately with the caller's reason, even between attempts", async () => {
    for (const answer of [silence, cut()]) {
      const { client, clock } = rig([answer]);
      const stop = new AbortController();
      const call = client.get(builtin.configMaps, ref, { signal: stop.signal }).catch((error: unknown) => error);
      await clock.advance(1);
      stop.abort(new Error("shutting down"));
      expect(String(await call)).toBe("Error: shutting down");
      expect(clock.pending).toBe(0);
    }
  });

  test("credentials that never resolve run into the deadline", async () => {
    const clock = manualClock();
    const client = connect({ server: "https://api", access: () => new Promise(() => {}) }, { clock });
    expect(await outcome(clock, client.get(builtin.configMaps, ref))).toBeInstanceOf(ConnectionError);
    const watching = Array.fromAsync(client.watch(builtin.configMaps, { resourceVersion: "7" }));
    expect(await outcome(clock, watching)).toBeInstanceOf(ConnectionError);
  });
});

describe("rejected credentials", () => {
  test("are renewed once", async () => {
    const { client, clock, sent, refreshes } = rig([failure(401), ok]);
    expect(await outcome(clock, client.create(builtin.configMaps, configMap))).toEqual(configMap);
    expect(refreshes).toEqual([false, true]);
    expect(sent[1]?.headers["authorization"]).toBe("Bearer new-token");
  });

  test("are renewed once even if a later attempt fails", async () => {
    const { client, clock, refreshes } = rig([failure(401), failure(500), ok]);
    expect(await outcome(clock, client.get(builtin.configMaps, ref))).toEqual(configMap);
    expect(refreshes).toEqual([false, true, false]);
  });

  test("are not renewed again when the new ones are rejected", async () => {
    const { client, clock, sent } = rig([failure(401)]);
    expect(isUnauthorized(await outcome(clock, client.get(builtin.configMaps, ref)))).toBe(true);
    expect(sent.length).toBe(2);
  });
});

describe("errors", () => {
  test("contain the call and the server's message", async () => {
    const causes = [{ field: "spec.x", reason: "FieldValueInvalid", message: "must be y" }];
    const { client, clock } = rig([failure(422, { reason: "Invalid", details: { causes } })]);
    const error = await outcome(clock, client.create(builtin.configMaps, configMap));
    expect(isInvalid(error)).toBe(true);
    expect(error).toMatchObject({ status: 422, reason: "Invalid", causes, explanation: "the server's message" });
    expect(String(error)).toContain("POST /api/v1/namespaces/a/configmaps: 422 Invalid: the server's message");
  });

  test("from a proxy have its status but none of its text", async () => {
    const { client, clock } = rig([() => new Response("<html>token=hunter2</html>", { status: 403 })]);
    const error = await outcome(clock, client.get(builtin.configMaps, ref));
    expect(isForbidden(error)).toBe(true);
    expect(String(error)).not.toContain("hunter2");
  });

  test("never contain the token", async () => {
    for (const answer of [failure(403), cut(), silence]) {
      const { client, clock } = rig([answer]);
      const error = await outcome(clock, client.get(builtin.configMaps, ref));
      expect(Bun.inspect(error)).not.toContain("old-token");
    }
  });

  test("`find` returns undefined for a missing object and throws every other error", async () => {
    const { client, clock } = rig([failure(404), failure(409)]);
    expect(await outcome(clock, client.find(builtin.configMaps, ref))).toBeUndefined();
    expect(isConflict(await outcome(clock, client.find(builtin.configMaps, ref)))).toBe(true);
    expect(isNotFound(await outcome(clock, rig([failure(404)]).client.get(builtin.configMaps, ref)))).toBe(true);
  });
});

test("every attempt is reported with its code, and with the error of one that failed", async () => {
  const seen: ApiResponse[] = [];
  const { client, clock } = rig([cut(), unavailable, failure(403)], { onResponse: (each) => void seen.push(each) });
  await outcome(clock, client.get(builtin.configMaps, ref));
  const call = "GET /api/v1/namespaces/a/configmaps/x";
  expect(seen).toMatchObject([
    { call, method: "GET", code: "<error>" },
    { call, code: 503, error: { status: 503 } },
    { call, code: 403, error: { explanation: "the server's message" } },
  ]);
});

describe("lists", () => {
  const page = (resourceVersion: string, names: readonly string[], next?: string): Answer =>
    json({ metadata: { resourceVersion, continue: next }, items: names.map((name) => ({ metadata: { name } })) });

  test("are read page by page and joined, and their items have apiVersion and kind", async () => {
    const { client, sent } = rig([page("7", ["x"], "more"), page("7", ["y"])]);
    const list = await client.list(builtin.configMaps, { namespace: "a", labelSelector: "l=1", pageSize: 1 });
    expect(list.resourceVersion).toBe("7");
    expect(list.items).toMatchObject([
      { kind: "ConfigMap", metadata: { name: "x" } },
      { apiVersion: "v1", metadata: { name: "y" } },
    ]);
    const at = "GET /api/v1/namespaces/a/configmaps?labelSelector=l%3D1&limit=1";
    expect(sent.map(methodAndPath)).toEqual([at, `${at}&continue=more`]);
  });

  test("are read again in a single page when the continue token expires", async () => {
    const { client, sent } = rig([page("7", ["x"], "more"), failure(410), page("9", ["x", "y"])]);
    const list = await client.list(builtin.configMaps);
    expect(list.resourceVersion).toBe("9");
    expect(list.items.map(({ metadata }) => metadata.name)).toEqual(["x", "y"]);
    expect(sent.map(methodAndPath).at(-1)).toBe("GET /api/v1/configmaps?limit=0");
  });

  test("can be read page by page, and only as far as needed", async () => {
    const { client, sent } = rig([page("7", ["x"], "more"), page("7", ["y"])]);
    for await (const { items } of client.pages(builtin.configMaps, { pageSize: 1 })) {
      expect(items.map(({ metadata }) => metadata.name)).toEqual(["x"]);
      break;
    }
    expect(sent.map(methodAndPath)).toEqual(["GET /api/v1/configmaps?limit=1"]);
  });

  test("request the next page while the caller processes one, if it wants all of them", async () => {
    const requested = Promise.withResolvers<void>();
    const second: Answer = (request) => {
      requested.resolve();
      return page("7", ["y"])(request);
    };
    const { client } = rig([page("7", ["x"], "more"), second]);
    const names: unknown[] = [];
    for await (const { items } of client.pages(builtin.configMaps, { pageSize: 1, prefetch: true })) {
      await requested.promise;
      names.push(items[0]?.metadata.name);
    }
    expect(names).toEqual(["x", "y"]);
  });

  test("report a failure of a prefetched page when the caller requests it", async () => {
    const { client } = rig([page("7", ["x"], "more"), failure(410)]);
    const seen: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const { items } of client.pages(builtin.configMaps, { prefetch: true })) seen.push(items.length);
    };
    expect(await read().catch(isExpired)).toBe(true);
    expect(seen).toEqual([1]);
  });

  test("pass each object through a transformation", async () => {
    const { client } = rig([page("7", ["x"])]);
    const list = await client.list(builtin.configMaps, { transform: (object) => ({ ...object, data: { k: "v" } }) });
    expect(list.items).toMatchObject([{ data: { k: "v" } }]);
  });
});

describe("watches", () => {
  const event = (name: string): string =>
    `${JSON.stringify({ type: "ADDED", object: { ...configMap, metadata: { name } } })}\n`;

  test("request bookmarks, and end when the server ends them", async () => {
    const { client, sent } = rig([() => new Response(event("x") + event("y"))]);
    const options = { resourceVersion: "7", serverTimeoutSeconds: 30, namespace: "a" };
    const events = await Array.fromAsync(client.watch(builtin.configMaps, options));
    expect(events.map((one) => one.type)).toEqual(["ADDED", "ADDED"]);
    expect(sent.map(methodAndPath)).toEqual([
      "GET /api/v1/namespaces/a/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=30",
    ]);
  });

  test("must start before the deadline, and may then be silent", async () => {
    const { client, clock, sent } = rig([silence, partialBody]);
    const stop = new AbortController();
    const options = { resourceVersion: "7", signal: stop.signal };
    const watching = Array.fromAsync(client.watch(builtin.configMaps, options)).catch(String);
    await clock.advance(3600_000);
    expect(sent.length).toBe(2);
    stop.abort(new Error("enough"));
    expect(await watching).toBe("Error: enough");
  });

  test("close their connection when the consumer stops reading", async () => {
    const { client, sent } = rig([() => new Response(event("x") + event("y"))]);
    for await (const _ of client.watch(builtin.configMaps, { resourceVersion: "7" })) break;
    expect(sent[0]?.signal.aborted).toBe(true);
  });
});

describe("the API server's clock", () => {
  const dated: Answer = () => new Response("{}", { headers: { date: "Tue, 01 Jan 2030 00:00:01 GMT" } });

  test.each([
    ["is read from the Date header", dated, new Date("2030-01-01T00:00:01Z")],
    ["is unknown without a Date header", json({}), undefined],
    ["is unknown if the Date header is invalid", () => new Response("{}", { headers: { date: "soon" } }), undefined],
    ["is unknown if the client may not read /version", failure(403, { reason: "Forbidden" }), undefined],
  ] as const)("%s", async (_, answer, time) => {
    const { client, sent } = rig([answer]);
    expect(await client.serverTime()).toEqual(time);
    expect(sent.map(({ method, url }) => `${method} ${url}`)).toEqual(["GET https://api:6443/version"]);
  });
});
