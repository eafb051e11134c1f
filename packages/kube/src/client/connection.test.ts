/** The client against a scripted transport and a clock that tests move: what it sends, and what it does when it fails. */
import { describe, expect, test } from "bun:test";

import { builtin } from "./builtin.ts";
import type { Client } from "./client.ts";
import { connect, type ConnectOptions } from "./connection.ts";
import type { Credentials } from "./credentials.ts";
import { asError } from "./deadline.ts";
import { ConnectionError, isConflict, isForbidden, isInvalid, isNotFound, isUnauthorized } from "./errors.ts";
import type { HttpRequest } from "./http.ts";
import type { ApiResponse } from "./request.ts";
import { manualClock, type ManualClock } from "../manual-clock.ts";

type Answer = (request: HttpRequest) => Response | Promise<Response>;

const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x", namespace: "a" } };
const ref = { name: "x", namespace: "a" };

const json =
  (body: object, status = 200): Answer =>
  () =>
    Response.json(body, { status });
const ok = json(configMap);
const failure = (code: number, details: object = {}): Answer =>
  json({ kind: "Status", code, reason: "Reason", message: "the server's words", ...details }, code);
const tooMany: Answer = () => new Response("slow down", { status: 429, headers: { "retry-after": "1" } });
const unavailable: Answer = () => new Response("", { status: 503, headers: { "retry-after": "1" } });
const cut =
  (code = "ECONNRESET"): Answer =>
  () =>
    Promise.reject(Object.assign(new Error("cut"), { code }));
const silence: Answer = ({ signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(asError(signal.reason))));
const halfABody: Answer = ({ signal }) =>
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

/** Answers in this order; the last one for ever. */
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

/** Lets the call run for up to a minute of the clock; its value or its error. */
async function outcome<T>(clock: ManualClock, call: Promise<T>): Promise<unknown> {
  const settled: Promise<unknown> = call.catch((error: unknown) => error);
  await clock.advance(60_000);
  return await settled;
}

const what = ({ method, url }: HttpRequest): string => `${method} ${url.replace("https://api:6443", "")}`;
const bodyOf = (request: HttpRequest | undefined): unknown => JSON.parse(request?.body ?? "null") as unknown;

describe("what is sent", () => {
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
      "apply of the status alone, taking nothing from others",
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
      expect(sent.map(what)).toEqual([expected]);
      expect(bodyOf(sent[0])).toEqual(body ?? null);
      expect(sent[0]?.headers["content-type"]).toBe(body ? type : undefined);
      expect(sent[0]?.headers["authorization"]).toBe("Bearer old-token");
    });
  }

  test("an object without the namespace it needs is not sent", async () => {
    const { client, clock, sent } = rig([ok]);
    const homeless = { ...configMap, metadata: { name: "x" } };
    expect(String(await outcome(clock, client.create(builtin.configMaps, homeless)))).toContain("needs a namespace");
    expect(sent).toEqual([]);
  });
});

describe("which calls are sent again after their connection was cut", () => {
  const jsonPatch = { type: "json", body: [] } as const;
  const cases: [string, (client: Client) => Promise<unknown>, boolean][] = [
    ["get", (c) => c.get(builtin.configMaps, ref), true],
    ["list", (c) => c.list(builtin.configMaps), true],
    ["apply", (c) => c.apply(builtin.configMaps, configMap, { fieldManager: "me" }), true],
    ["merge patch", (c) => c.patch(builtin.configMaps, ref, { patch: { type: "merge", body: {} } }), true],
    ["delete of one very object", (c) => c.delete(builtin.configMaps, ref, { uid: "u" }), true],
    ["token request", (c) => c.createToken(ref, { audiences: [] }).catch(() => undefined), true],
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

  test("a second attempt uses a connection of its own, and so does what is sent but once", async () => {
    const { client, clock, sent } = rig([cut(), ok]);
    await outcome(clock, client.get(builtin.configMaps, ref));
    await outcome(clock, client.create(builtin.configMaps, configMap));
    expect(sent.map(({ freshConnection }) => freshConnection)).toEqual([false, true, true]);
  });

  for (const [name, answer] of [
    ["the connection was refused", cut("ECONNREFUSED")],
    ["the server is too busy and says when to come back", tooMany],
    ["the server is not available and says when to come back", unavailable],
  ] as const) {
    test(`create, when ${name}: yes`, async () => {
      const { client, clock, sent } = rig([answer, ok]);
      expect(await outcome(clock, client.create(builtin.configMaps, configMap))).toEqual(configMap);
      expect(sent.length).toBe(2);
    });
  }
});

describe("deadlines", () => {
  test("a silent connection is given up in time for another attempt", async () => {
    const { client, clock, sent } = rig([silence, ok]);
    const start = clock.now();
    let took = 0;
    const call = client.get(builtin.configMaps, ref).finally(() => (took = clock.now() - start));
    expect(await outcome(clock, call)).toEqual(configMap);
    expect([sent.length, took]).toEqual([2, 10_100]);
  });

  test("so is one that falls silent in the middle of its answer", async () => {
    const { client, clock, sent } = rig([halfABody, ok]);
    expect(await outcome(clock, client.get(builtin.configMaps, ref))).toEqual(configMap);
    expect(sent.length).toBe(2);
  });

  test("a create is sent once, and its silence is told", async () => {
    const { client, clock, sent } = rig([silence]);
    const error = await outcome(clock, client.create(builtin.configMaps, configMap));
    expect(error).toMatchObject({ name: "ConnectionError", code: "DEADLINE" });
    expect(sent.length).toBe(1);
  });

  test("all attempts together end within the call's time", async () => {
    const { client, clock } = rig([silence]);
    const start = clock.now();
    let took = Infinity;
    const call = client.get(builtin.configMaps, ref).finally(() => (took = clock.now() - start));
    expect(await outcome(clock, call)).toBeInstanceOf(ConnectionError);
    expect(took).toBeLessThanOrEqual(30_000);
  });

  for (const step of [3_600_000, -3_600_000]) {
    test(`a wall clock that is set by ${step} ms does not change the call's time`, async () => {
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

  test("a call may have less time", async () => {
    const { client, clock, sent } = rig([silence]);
    const call = client.get(builtin.configMaps, ref, { timeoutMs: 500 }).catch((error: unknown) => error);
    await clock.advance(500);
    expect(await call).toBeInstanceOf(ConnectionError);
    expect(sent.length).toBe(1);
  });

  test("a caller who aborts gets his own reason, at once, also between attempts", async () => {
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

  test("credentials that never come are no answer either", async () => {
    const clock = manualClock();
    const client = connect({ server: "https://api", access: () => new Promise(() => {}) }, { clock });
    expect(await outcome(clock, client.get(builtin.configMaps, ref))).toBeInstanceOf(ConnectionError);
    const watching = Array.fromAsync(client.watch(builtin.configMaps, { resourceVersion: "7" }));
    expect(await outcome(clock, watching)).toBeInstanceOf(ConnectionError);
  });
});

describe("refused credentials", () => {
  test("are renewed once", async () => {
    const { client, clock, sent, refreshes } = rig([failure(401), ok]);
    expect(await outcome(clock, client.create(builtin.configMaps, configMap))).toEqual(configMap);
    expect(refreshes).toEqual([false, true]);
    expect(sent[1]?.headers["authorization"]).toBe("Bearer new-token");
  });

  test("and the new ones are kept for the attempts that follow", async () => {
    const { client, clock, refreshes } = rig([failure(401), failure(500), ok]);
    expect(await outcome(clock, client.get(builtin.configMaps, ref))).toEqual(configMap);
    expect(refreshes).toEqual([false, true, false]);
  });

  test("and not for ever", async () => {
    const { client, clock, sent } = rig([failure(401)]);
    expect(isUnauthorized(await outcome(clock, client.get(builtin.configMaps, ref)))).toBe(true);
    expect(sent.length).toBe(2);
  });
});

describe("errors", () => {
  test("say what the server said of which call", async () => {
    const causes = [{ field: "spec.x", reason: "FieldValueInvalid", message: "must be y" }];
    const { client, clock } = rig([failure(422, { reason: "Invalid", details: { causes } })]);
    const error = await outcome(clock, client.create(builtin.configMaps, configMap));
    expect(isInvalid(error)).toBe(true);
    expect(error).toMatchObject({ status: 422, reason: "Invalid", causes, explanation: "the server's words" });
    expect(String(error)).toContain("POST /api/v1/namespaces/a/configmaps: 422 Invalid: the server's words");
  });

  test("of something on the way that is no API server have a status, and nothing of its text", async () => {
    const { client, clock } = rig([() => new Response("<html>token=hunter2</html>", { status: 403 })]);
    const error = await outcome(clock, client.get(builtin.configMaps, ref));
    expect(isForbidden(error)).toBe(true);
    expect(String(error)).not.toContain("hunter2");
  });

  test("never hold the token", async () => {
    for (const answer of [failure(403), cut(), silence]) {
      const { client, clock } = rig([answer]);
      const error = await outcome(clock, client.get(builtin.configMaps, ref));
      expect(Bun.inspect(error)).not.toContain("old-token");
    }
  });

  test("`find` is undefined for what does not exist, and fails for all else", async () => {
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
    { call, code: 403, error: { explanation: "the server's words" } },
  ]);
});

describe("lists", () => {
  const page = (resourceVersion: string, names: readonly string[], next?: string): Answer =>
    json({ metadata: { resourceVersion, continue: next }, items: names.map((name) => ({ metadata: { name } })) });

  test("are read page by page and joined, and their objects say what they are", async () => {
    const { client, sent } = rig([page("7", ["x"], "more"), page("7", ["y"])]);
    const list = await client.list(builtin.configMaps, { namespace: "a", labelSelector: "l=1", pageSize: 1 });
    expect(list.resourceVersion).toBe("7");
    expect(list.items).toMatchObject([
      { kind: "ConfigMap", metadata: { name: "x" } },
      { apiVersion: "v1", metadata: { name: "y" } },
    ]);
    const at = "GET /api/v1/namespaces/a/configmaps?labelSelector=l%3D1&limit=1";
    expect(sent.map(what)).toEqual([at, `${at}&continue=more`]);
  });

  test("begin anew, in one piece, when their moment is forgotten half-way", async () => {
    const { client, sent } = rig([page("7", ["x"], "more"), failure(410), page("9", ["x", "y"])]);
    const list = await client.list(builtin.configMaps);
    expect(list.resourceVersion).toBe("9");
    expect(list.items.map(({ metadata }) => metadata.name)).toEqual(["x", "y"]);
    expect(sent.map(what).at(-1)).toBe("GET /api/v1/configmaps");
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

  test("ask for bookmarks, and end when the server ends them", async () => {
    const { client, sent } = rig([() => new Response(event("x") + event("y"))]);
    const options = { resourceVersion: "7", serverTimeoutSeconds: 30, namespace: "a" };
    const events = await Array.fromAsync(client.watch(builtin.configMaps, options));
    expect(events.map((one) => one.type)).toEqual(["ADDED", "ADDED"]);
    expect(sent.map(what)).toEqual([
      "GET /api/v1/namespaces/a/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=30",
    ]);
  });

  test("must begin in time, and may then be silent", async () => {
    const { client, clock, sent } = rig([silence, halfABody]);
    const stop = new AbortController();
    const options = { resourceVersion: "7", signal: stop.signal };
    const watching = Array.fromAsync(client.watch(builtin.configMaps, options)).catch(String);
    await clock.advance(3600_000);
    expect(sent.length).toBe(2);
    stop.abort(new Error("enough"));
    expect(await watching).toBe("Error: enough");
  });

  test("close their connection when nobody wants more", async () => {
    const { client, sent } = rig([() => new Response(event("x") + event("y"))]);
    for await (const _ of client.watch(builtin.configMaps, { resourceVersion: "7" })) break;
    expect(sent[0]?.signal.aborted).toBe(true);
  });
});

describe("logs of a pod", () => {
  test("are a stream that closes itself", async () => {
    const { client, clock, sent } = rig([() => new Response("line\n")]);
    const stream = await client.podLogs(ref, { container: "c", tailLines: 5 });
    expect(await new Response(stream).text()).toBe("line\n");
    expect(sent.map(what)).toEqual(["GET /api/v1/namespaces/a/pods/x/log?container=c&follow=false&tailLines=5"]);
    expect([sent[0]?.signal.aborted, clock.pending]).toEqual([true, 0]);
  });

  test("end in time, unless they are followed", async () => {
    for (const follow of [false, true]) {
      const { client, clock, sent } = rig([halfABody]);
      const stream = await client.podLogs(ref, { follow });
      const reading = new Response(stream).text().catch((error: unknown) => error);
      await clock.advance(3600_000);
      expect(sent[0]?.signal.aborted).toBe(!follow);
      if (!follow) expect(await reading).toMatchObject({ code: "DEADLINE" });
    }
  });
});

test("a token of a service account", async () => {
  const status = { token: "t", expirationTimestamp: "2030-01-01T01:00:00Z" };
  const { client, sent } = rig([json({ status }, 201)]);
  const issued = await client.createToken(ref, { audiences: ["agent"], expirationSeconds: 600 });
  expect(issued).toEqual({ token: "t", expiresAt: new Date(status.expirationTimestamp) });
  expect(sent.map(what)).toEqual(["POST /api/v1/namespaces/a/serviceaccounts/x/token"]);
  expect(bodyOf(sent[0])).toMatchObject({ spec: { audiences: ["agent"], expirationSeconds: 600 } });
});

describe("the API server's clock", () => {
  const dated: Answer = () => new Response("{}", { headers: { date: "Tue, 01 Jan 2030 00:00:01 GMT" } });

  test.each([
    ["is read from the answer's date", dated, new Date("2030-01-01T00:00:01Z")],
    ["is unknown where the answer has no date", json({}), undefined],
    ["is unknown where the date is not one", () => new Response("{}", { headers: { date: "soon" } }), undefined],
    ["is unknown where the client may not ask", failure(403, { reason: "Forbidden" }), undefined],
  ] as const)("%s", async (_, answer, time) => {
    const { client, sent } = rig([answer]);
    expect(await client.serverTime()).toEqual(time);
    expect(sent.map(({ method, url }) => `${method} ${url}`)).toEqual(["GET https://api:6443/version"]);
  });
});
