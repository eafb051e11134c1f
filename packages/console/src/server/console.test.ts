/** Attacks on the server. Behind it is a server that records what reaches it; test/integration/console has a real one. */
import { connect } from "node:net";

import { logger, manualClock, staticCredentials } from "@pko/kube";
import { afterAll, beforeEach, describe, expect, test } from "bun:test";

import { encodeSubscriptions, limits, type Session } from "../shared/contract.ts";
import { startConsole, type Console, type ConsoleOptions } from "./console.ts";
import { messages } from "./messages.ts";

interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

const received: Received[] = [];
const canary = "canary-of-the-user";
const plainSecret = "secret-in-plain-text";
const hostile = "<script>alert(1)</script>";

/** Knows two tokens. */
async function answer(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const headers = Object.fromEntries(request.headers);
  received.push({ method: request.method, path: `${pathname}${search}`, headers, body: await request.text() });
  const token = headers["authorization"];
  if (token !== `Bearer ${canary}` && token !== "Bearer other") return rejected();
  if (pathname.endsWith("selfsubjectreviews")) {
    return Response.json({ status: { userInfo: { username: token === "Bearer other" ? "other" : "jane" } } });
  }
  if (pathname.endsWith("/log")) return new Response(hostile, { headers: { "content-type": "text/html" } });
  return Response.json(
    { items: [{ metadata: { name: hostile }, spec: { secrets: { password: plainSecret } } }] },
    { headers: { "set-cookie": "a=b", "access-control-allow-origin": "*", "x-internal": canary } },
  );
}

const rejected = (): Response => Response.json({ kind: "Status", code: 401 }, { status: 401 });

const api = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });

const server = `http://127.0.0.1:${api.port}`;
const page = new TextEncoder().encode("<!doctype html><title>Pulumi</title>");
const script = new TextEncoder().encode("export {};".repeat(100));
const assets: NonNullable<ConsoleOptions["assets"]> = new Map([
  ["/index.html", { bytes: page, contentType: "text/html; charset=utf-8", hash: "1" }],
  ["/assets/app-1.js", { bytes: script, contentType: "text/javascript; charset=utf-8", hash: "2" }],
]);

const logged: string[] = [];
const log = logger({ level: "debug", write: (line) => void logged.push(line) });
const started: Console[] = [];

async function open(options: Partial<ConsoleOptions> = {}): Promise<Console> {
  const signIn = { mode: "cluster", server } as const;
  const console = await startConsole({ signIn, port: 0, hostname: "127.0.0.1", assets, log, ...options });
  started.push(console);
  return console;
}

const credentials = staticCredentials({ server, token: canary, tls: {} });
const openLocal = async (options: Partial<ConsoleOptions> = {}): Promise<Console> =>
  await open({ signIn: { mode: "kubeconfig", credentials, context: "dev" }, ...options });

afterAll(async () => {
  await Promise.all(started.map(async (each) => await each.stop()));
  await api.stop(true);
});
beforeEach(() => void (received.length = 0));

type Init = Omit<RequestInit, "headers"> & { readonly headers?: Record<string, string> };

const send = async ({ port }: Console, path: string, init: Init = {}): Promise<Response> =>
  await fetch(`http://127.0.0.1:${port}${path}`, init);

/** Headers of the page's own requests that change something. */
const own = ({ port }: Console): Record<string, string> => ({
  origin: `http://127.0.0.1:${port}`,
  "x-pulumi-console": "1",
  "content-type": "application/json",
});

const signIn = async (console: Console, token: string): Promise<Response> =>
  await send(console, "/session", { method: "POST", headers: own(console), body: JSON.stringify({ token }) });

const cookieOf = (response: Response): string => (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";

const urlToken = ({ url }: Console): string => new URL(url).hash.replace("#token=", "");

/** Sends bytes and returns what comes back until the connection is closed, or the response is complete. */
async function raw(
  { port }: Console,
  text: string,
  { until = "\r\n\r\n", from = "127.0.0.1" }: { until?: string; from?: string } = {},
): Promise<string> {
  const ended = Promise.withResolvers<string>();
  let answer = "";
  const socket = connect({ port, host: "127.0.0.1", localAddress: from }, () => void socket.write(text));
  socket.on("data", (data) => {
    answer += data.toString();
    if (answer.includes(until)) socket.destroy();
  });
  socket.on("error", () => undefined);
  socket.on("close", () => ended.resolve(answer));
  return await ended.promise;
}

const proxied = { authorization: `Bearer ${canary}` };
const stacks = "/k8s/apis/pulumi.com/v1/stacks";

describe("without credentials", () => {
  test("there is no data, and the API server is not asked", async () => {
    for (const console of [await open(), await openLocal()]) {
      for (const path of [stacks, "/k8s/api/v1/secrets", "/stream?q=W10", "/k8s/"]) {
        const response = await send(console, path);
        expect([response.status, await response.json()]).toEqual([401, { message: messages.notSignedIn }]);
      }
    }
    expect(received).toEqual([]);
  });

  test("a session says only how to sign in", async () => {
    expect(await (await send(await open(), "/session")).json()).toEqual({ signedIn: false, mode: "token" });
    expect(await (await send(await openLocal(), "/session")).json()).toEqual({ signedIn: false, mode: "kubeconfig" });
  });

  for (const authorization of ["Basic amFuZTpwYXNz", "Bearer ", "Bearer a b", "Bearer a, Bearer b", "Bearer a\tb"]) {
    test(`the header Authorization: ${authorization} is none`, async () => {
      expect((await send(await open(), stacks, { headers: { authorization } })).status).toBe(401);
      expect(received).toEqual([]);
    });
  }
});

describe("kubectl pulumi ui", () => {
  test("the token of the address is valid once", async () => {
    const console = await openLocal();
    const first = await signIn(console, urlToken(console));
    expect([first.status, (await first.json()) as Session]).toEqual([
      200,
      { signedIn: true, mode: "kubeconfig", user: "jane", context: "dev" },
    ]);
    expect((await signIn(console, urlToken(console))).status).toBe(401);
    const headers = { cookie: cookieOf(first) };
    expect((await send(console, stacks, { headers })).status).toBe(200);
  });

  test("another user of the machine has no token, and a guess does not use it up", async () => {
    const console = await openLocal();
    for (const guess of ["a", "x".repeat(43), urlToken(console).slice(1)]) {
      expect((await signIn(console, guess)).status).toBe(401);
    }
    for (const cookie of ["pulumi-console=", "pulumi-console=x", `pulumi-console=${urlToken(console)}`]) {
      expect((await send(console, stacks, { headers: { cookie } })).status).toBe(401);
    }
    expect(received).toEqual([]);
    expect((await signIn(console, urlToken(console))).status).toBe(200);
  });

  test("a token of the browser is not used", async () => {
    const console = await openLocal();
    expect((await send(console, stacks, { headers: proxied })).status).toBe(401);
    expect(received).toEqual([]);
  });

  test("listens on the loopback interface only, whatever is requested", async () => {
    const console = await openLocal({ hostname: "0.0.0.0" });
    expect(new URL(console.url).hostname).toBe("127.0.0.1");
  });

  test("has a name of its own, so that its cookie is not sent to other ports", async () => {
    const console = await openLocal({ hosts: ["pulumi-1.localhost"] });
    expect(new URL(console.url).host).toBe(`pulumi-1.localhost:${console.port}`);
    const status = async (host: string): Promise<number> =>
      (await send(console, "/session", { headers: { host } })).status;
    expect(await status(`pulumi-1.localhost:${console.port}`)).toBe(200);
    expect(await status(`pulumi-2.localhost:${console.port}`)).toBe(403);
  });
});

describe("a token that the user enters", () => {
  test("stays on the server", async () => {
    const console = await open();
    const response = await signIn(console, canary);
    expect(await response.json()).toEqual({ signedIn: true, mode: "token", user: "jane" });
    const cookie = response.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(/^pulumi-console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    const read = await send(console, stacks, { headers: { cookie: cookieOf(response) } });
    expect(read.status).toBe(200);
    expect(received.at(-1)?.headers["authorization"]).toBe(`Bearer ${canary}`);
    const all = [...response.headers, ...read.headers, await read.text(), logged].join("\n");
    expect(all).not.toContain(canary);
  });

  test("behind HTTPS, the cookie is Secure and bound to the host", async () => {
    const console = await open();
    const headers = { ...own(console), "x-forwarded-proto": "https" };
    const body = JSON.stringify({ token: canary });
    const response = await send(console, "/session", { method: "POST", headers, body });
    expect(response.headers.get("set-cookie")).toMatch(
      /^__Host-pulumi-console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect((await send(console, stacks, { headers: { cookie: cookieOf(response) } })).status).toBe(200);
  });

  test("behind HTTPS, a cookie that a sibling domain can set is not one of the console", async () => {
    const console = await open();
    const cookie = cookieOf(await signIn(console, canary));
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await send(console, stacks, { headers: { cookie, ...headers } })).status;
    expect(await status({})).toBe(200);
    expect(await status({ "x-forwarded-proto": "https" })).toBe(401);
  });

  test("is refused over plain HTTP", async () => {
    const console = await open();
    const headers = { ...own(console), host: "console.example", origin: "http://console.example" };
    const body = JSON.stringify({ token: canary });
    const response = await send(console, "/session", { method: "POST", headers, body });
    expect([response.status, await response.json()]).toEqual([403, { message: messages.insecure }]);
    expect(received).toEqual([]);
  });

  test("is refused if the API server refuses it", async () => {
    const response = await signIn(await open(), "wrong");
    expect([response.status, response.headers.get("set-cookie")]).toEqual([401, null]);
  });

  for (const token of ["", "a b", "a\r\nImpersonate-User: root", "ä", "x".repeat(9000), 1, null]) {
    test(`${JSON.stringify(token).slice(0, 40)} is not one`, async () => {
      const console = await open();
      const body = JSON.stringify({ token });
      expect((await send(console, "/session", { method: "POST", headers: own(console), body })).status).toBe(400);
      expect(received).toEqual([]);
    });
  }

  test("is forgotten when the user signs out, and open pages are disconnected", async () => {
    const console = await open();
    const cookie = cookieOf(await signIn(console, canary));
    const q = encodeSubscriptions([{ id: "a", kind: "watch", resource: "stacks" }]);
    const stream = await send(console, `/stream?q=${q}`, { headers: { cookie } });
    const signedOut = await send(console, "/session", { method: "DELETE", headers: { ...own(console), cookie } });
    expect([signedOut.status, signedOut.headers.get("set-cookie")]).toEqual([
      204,
      "pulumi-console=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0",
    ]);
    await stream.text();
    expect((await send(console, stacks, { headers: { cookie } })).status).toBe(401);
  });

  test.each([
    ["in the cluster is compressed, if the browser accepts it", "gzip, br", "gzip"],
    ["is not compressed if the browser does not accept it", "br", null],
  ])("a stream %s", async (_, accepted, encoding) => {
    const console = await open();
    const q = encodeSubscriptions([{ id: "a", kind: "watch", resource: "stacks" }]);
    const headers = { ...proxied, "accept-encoding": accepted };
    const stream = await send(console, `/stream?q=${q}`, { headers });
    expect(stream.headers.get("content-encoding")).toBe(encoding);
    let text = "";
    for await (const chunk of stream.body ?? []) {
      text += new TextDecoder().decode(chunk);
      if (text.includes('"synced"')) break;
    }
    expect(text).toStartWith("retry: 2000\n\ndata: ");
  });

  test("ends after twelve hours, with the pages that are open", async () => {
    const clock = manualClock();
    const console = await open({ clock });
    const cookie = cookieOf(await signIn(console, canary));
    await clock.advance(12 * 3600_000 - 1);
    expect((await send(console, stacks, { headers: { cookie } })).status).toBe(200);
    const q = encodeSubscriptions([{ id: "a", kind: "watch", resource: "stacks" }]);
    const stream = await send(console, `/stream?q=${q}`, { headers: { cookie } });
    await clock.advance(2);
    await stream.text();
    expect((await send(console, stacks, { headers: { cookie } })).status).toBe(401);
  });

  test("of a proxy takes precedence, and sessions are separate", async () => {
    const console = await open();
    const cookie = cookieOf(await signIn(console, canary));
    const session = await send(console, "/session", { headers: { cookie, authorization: "Bearer other" } });
    expect(await session.json()).toEqual({ signedIn: true, mode: "proxy", user: "other" });
  });
});

describe("requests of other sites", () => {
  test("a write needs the console's header and its origin", async () => {
    const console = await open();
    const path = "/k8s/apis/pulumi.com/v1/namespaces/a/stacks/web";
    const body = JSON.stringify({ spec: { suspend: true } });
    const all: Record<string, string> = { ...proxied, ...own(console), "content-type": "application/merge-patch+json" };
    const { ["origin"]: _, ...withoutOrigin } = all;
    const { "x-pulumi-console": __, ...withoutHeader } = all;
    for (const headers of [withoutOrigin, withoutHeader, { ...all, origin: "https://attacker.example" }]) {
      expect((await send(console, path, { method: "PATCH", headers, body })).status).toBe(403);
    }
    expect(received).toEqual([]);
    expect((await send(console, path, { method: "PATCH", headers: all, body })).status).toBe(200);
    expect(received.map(({ method, body }) => [method, body])).toEqual([["PATCH", body]]);
  });

  test("a preflight request gets no permission", async () => {
    const response = await send(await open(), stacks, {
      method: "OPTIONS",
      headers: { origin: "https://attacker.example", "access-control-request-method": "GET" },
    });
    expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([405, null]);
  });

  test("a stream is refused", async () => {
    const headers = { ...proxied, "sec-fetch-site": "cross-site" };
    expect((await send(await open(), "/stream?q=W10", { headers })).status).toBe(403);
  });

  test("a form cannot send JSON as text", async () => {
    const console = await open();
    const headers = { ...proxied, ...own(console), "content-type": "text/plain" };
    expect((await send(console, "/session", { method: "POST", headers, body: "{}" })).status).toBe(415);
  });
});

describe("headers", () => {
  test("of the browser never reach the API server", async () => {
    const console = await open();
    const headers = {
      ...proxied,
      "impersonate-user": "root",
      "impersonate-group": "system:masters",
      "impersonate-extra-a": "b",
      "x-remote-user": "root",
      "x-remote-group": "system:masters",
      "x-forwarded-for": "10.0.0.1",
      cookie: "a=b",
      accept: "text/html",
      te: "trailers",
    };
    expect((await send(console, stacks, { headers })).status).toBe(200);
    const [{ headers: sent } = { headers: {} }] = received;
    const { host: _, connection: __, "accept-encoding": ___, ...rest } = sent as Record<string, string>;
    expect(rest).toEqual({
      accept: "application/json",
      authorization: `Bearer ${canary}`,
      "user-agent": expect.stringMatching(/^pulumi-console\//) as string,
    });
  });

  for (const [name, text] of [
    ["two lengths", "Content-Length: 2\r\nContent-Length: 30\r\n\r\n{}"],
    ["a length and chunks", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["an unknown encoding", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
    ["a space before the colon", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"],
    ["a signed length", "Content-Length: +2\r\n\r\n{}"],
    ["a bare line feed", "X-A: b\nImpersonate-User: root\r\n\r\n"],
  ] as const) {
    test(`a request with ${name} is rejected, and so is what follows it`, async () => {
      const console = await open();
      const head = `POST /session HTTP/1.1\r\nHost: 127.0.0.1:${console.port}\r\nAuthorization: Bearer ${canary}\r\n`;
      const smuggled = `GET ${stacks} HTTP/1.1\r\nHost: 127.0.0.1:${console.port}\r\nAuthorization: Bearer ${canary}\r\n\r\n`;
      const answer = await raw(console, `${head}${text}${smuggled}`, { until: "never" });
      expect(answer).toStartWith("HTTP/1.1 400");
      expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect(received).toEqual([]);
    });
  }

  test("an address in the request line does not replace Host", async () => {
    const console = await openLocal();
    const answer = await raw(
      console,
      `GET http://127.0.0.1:${console.port}/session HTTP/1.1\r\nHost: attacker.example\r\n\r\n`,
    );
    expect(answer).toStartWith("HTTP/1.1 403");
  });

  test("a path that was normalized on the way is matched as it is sent on", async () => {
    const console = await open();
    for (const path of ["/k8s/api/v1/namespaces/a/pods/../secrets", "/k8s/api/v1/namespaces/a/pods/%2e%2e/secrets/x"]) {
      const answer = await raw(
        console,
        `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${canary}\r\n\r\n`,
      );
      expect(answer).toStartWith("HTTP/1.1 403");
    }
    expect(received).toEqual([]);
  });

  test("every response forbids frames, foreign resources, sniffing and caching of data", async () => {
    const console = await open();
    const all = await Promise.all([
      send(console, "/", { headers: { accept: "text/html" } }),
      send(console, "/assets/app-1.js"),
      send(console, "/missing"),
      send(console, "/session"),
      send(console, stacks),
      send(console, stacks, { headers: proxied }),
      send(console, "/k8s/api/v1/secrets", { headers: proxied }),
    ]);
    for (const { headers } of all) {
      const policy = headers.get("content-security-policy") ?? "";
      for (const directive of [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
      ]) {
        expect(policy).toContain(directive);
      }
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(headers.get("x-frame-options")).toBe("DENY");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
    }
    const [, , ...data] = all;
    for (const { headers } of data) expect(headers.get("cache-control")).toBe("no-store");
  });

  test("of the API server do not reach the browser", async () => {
    const { headers } = await send(await open(), stacks, { headers: proxied });
    for (const name of ["set-cookie", "access-control-allow-origin", "x-internal"])
      expect(headers.get(name)).toBeNull();
  });
});

describe("data", () => {
  test("with HTML in it is JSON", async () => {
    const response = await send(await open(), stacks, { headers: { ...proxied, accept: "text/html" } });
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toMatchObject({ items: [{ metadata: { name: hostile } }] });
  });

  test("a log with HTML in it is text, whatever the API server says", async () => {
    const response = await send(await open(), "/k8s/api/v1/namespaces/a/pods/p/log", { headers: proxied });
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(await response.text()).toBe(hostile);
  });

  test("with a secret in plain text is masked", async () => {
    const text = await (await send(await open(), stacks, { headers: proxied })).text();
    expect(text).toContain('{"password":"[secret]"}');
    expect(text).not.toContain(plainSecret);
  });

  test("the path of a request is not repeated in a response", async () => {
    const response = await send(await open(), `/k8s/${encodeURIComponent(hostile)}`, { headers: proxied });
    expect(await response.text()).not.toContain("script");
  });

  test.each([
    [500, 502],
    [503, 502],
    [429, 502],
    [403, 200],
    [404, 200],
  ])("a sign-in while the API server responds with %d to the review is a %d", async (review, expected) => {
    using failing = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(null, { status: review }) });
    const console = await open({ signIn: { mode: "cluster", server: `http://127.0.0.1:${failing.port}` } });
    const response = await signIn(console, "anything");
    expect([response.status, response.headers.has("set-cookie")]).toEqual([expected, expected === 200]);
  });

  test("the address of kubectl pulumi ui stays valid while the API server fails", async () => {
    let status = 503;
    using failing = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(null, { status }) });
    const failed = staticCredentials({ server: `http://127.0.0.1:${failing.port}`, token: canary, tls: {} });
    const console = await openLocal({ signIn: { mode: "kubeconfig", credentials: failed } });
    expect((await signIn(console, urlToken(console))).status).toBe(502);
    status = 403;
    expect((await signIn(console, urlToken(console))).status).toBe(200);
    expect((await signIn(console, urlToken(console))).status).toBe(401);
  });

  test("if the API server is unreachable, the message says so", async () => {
    const console = await open({ signIn: { mode: "cluster", server: "http://127.0.0.1:1" } });
    const response = await send(console, stacks, { headers: proxied });
    expect(response.status).toBe(502);
    expect(await response.text()).toContain("Cannot reach the API server");
  });

  test("a token that has expired ends the session", async () => {
    const console = await open();
    const cookie = cookieOf(await signIn(console, canary));
    using _ = expireTokens();
    expect((await send(console, stacks, { headers: { cookie } })).status).toBe(401);
    expect(await (await send(console, "/session", { headers: { cookie } })).json()).toEqual({
      signedIn: false,
      mode: "token",
    });
  });
});

/** The API server rejects all tokens for a while. */
function expireTokens(): Disposable {
  api.reload({ fetch: rejected });
  return { [Symbol.dispose]: () => void api.reload({ fetch: answer }) };
}

describe("limits", () => {
  test("a body that is too large is refused", async () => {
    const console = await open();
    const body = JSON.stringify({ token: "x".repeat(limits.bodyBytes) });
    const response = await send(console, "/session", { method: "POST", headers: own(console), body });
    expect(response.status).toBe(413);
  });

  test("a body in chunks that is too large is refused", async () => {
    const console = await open();
    const chunk = `4000\r\n${"a".repeat(0x4000)}\r\n`;
    const answer = await raw(console, `${head(console)}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(5)}0\r\n\r\n`);
    expect(answer).toStartWith("HTTP/1.1 413");
  });

  test("a body that does not arrive is given up", async () => {
    const clock = manualClock();
    const console = await open({ clock });
    const answer = raw(console, `${head(console)}Content-Length: 20\r\n\r\n{"token"`);
    while (clock.pending === 0) await new Promise<void>((resolve) => void setImmediate(resolve));
    await clock.advance(10_000);
    expect(await answer).toStartWith("HTTP/1.1 408");
  });

  test("headers that are too large are refused", async () => {
    const console = await open();
    expect(await raw(console, `${head(console)}X-A: ${"a".repeat(100_000)}\r\n\r\n`)).toStartWith("HTTP/1.1 431");
  });

  test("a session that sends too many requests must wait, others need not", async () => {
    const clock = manualClock();
    const console = await open({ clock });
    const statuses = new Set([(await send(console, stacks, { headers: proxied })).status]);
    for (let at = 0; at < limits.requestBurst; at++) {
      statuses.add((await send(console, "/k8s/api/v1/secrets", { headers: proxied })).status);
    }
    expect([...statuses]).toEqual([200, 403, 429]);
    expect((await send(console, stacks, { headers: { authorization: "Bearer other" } })).status).toBe(200);
    await clock.advance(1000);
    expect((await send(console, stacks, { headers: proxied })).status).toBe(200);
  });

  test("tokens of one address that the API server has never accepted share a limit", async () => {
    const console = await open({ clock: manualClock() });
    const status = async (token: string): Promise<number> =>
      (await send(console, "/session", { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await status(canary)).toBe(200);
    const statuses: number[] = [];
    for (let at = 0; at < 120; at++) statuses.push(await status(`guess-${at}`));
    expect([statuses.filter((each) => each === 200).length, statuses.at(-1)]).toEqual([99, 429]);
    expect(received).toHaveLength(100);
    expect(await status(canary)).toBe(200);
    expect(await status("other")).toBe(429);
    expect(await raw(console, get("/session", "other"), { from: "127.0.0.2" })).toStartWith("HTTP/1.1 200");
  });

  test("guesses do not remove the limits of accepted tokens", async () => {
    const clock = manualClock();
    const console = await open({ clock });
    const status = async (token: string): Promise<number> =>
      (await send(console, "/session", { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await status(canary)).toBe(200);
    for (let at = 0; at < 1100; at++) {
      await clock.advance(50);
      expect(await status(`guess-${at}`)).toBe(200);
    }
    for (let at = 0; at < 120; at++) await status(`late-guess-${at}`);
    expect(await status(canary)).toBe(200);
  });

  test("too many attempts to sign in must wait", async () => {
    const console = await open({ clock: manualClock() });
    const statuses: number[] = [];
    for (let at = 0; at < 25; at++) statuses.push((await signIn(console, "wrong")).status);
    expect([statuses.filter((each) => each === 401).length, statuses.at(-1)]).toEqual([20, 429]);
    const body = JSON.stringify({ token: canary });
    const request = `${head(console)}Content-Length: ${body.length}\r\n\r\n${body}`;
    expect(await raw(console, request, { from: "127.0.0.2" })).toStartWith("HTTP/1.1 200");
  });

  test("a session has a limited number of streams, and a closed one makes room", async () => {
    const console = await open();
    const q = encodeSubscriptions([{ id: "a", kind: "watch", resource: "stacks" }]);
    const openStream = async (closing?: AbortController): Promise<number> =>
      (await send(console, `/stream?q=${q}`, { headers: proxied, ...(closing && { signal: closing.signal }) })).status;
    const closing = new AbortController();
    expect(await openStream(closing)).toBe(200);
    for (let at = 1; at < limits.streamsPerSession; at++) expect(await openStream()).toBe(200);
    expect(await openStream()).toBe(429);
    closing.abort();
    let status = 429;
    while (status === 429) status = await openStream();
    expect(status).toBe(200);
  });
});

const get = (path: string, token: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;

/** Of a request that changes something, without its end. */
const head = ({ port }: Console): string =>
  [
    "POST /session HTTP/1.1",
    `Host: 127.0.0.1:${port}`,
    `Origin: http://127.0.0.1:${port}`,
    "X-Pulumi-Console: 1",
    "Content-Type: application/json",
    "",
  ].join("\r\n");

describe("the page", () => {
  test("is served for every path that a browser opens", async () => {
    const console = await open();
    for (const path of ["/", "/stacks/a/web", "/runs/a/web-1", "/approvals", "/sign-in"]) {
      const response = await send(console, path, { headers: { accept: "text/html,*/*" } });
      expect([response.headers.get("content-type"), await response.bytes()]).toEqual([
        "text/html; charset=utf-8",
        page,
      ]);
    }
  });

  test("its files are cached for ever and compressed, unknown ones are not found", async () => {
    const console = await open();
    const file = await fetch(`http://127.0.0.1:${console.port}/assets/app-1.js`, {
      headers: { "accept-encoding": "gzip" },
      decompress: false,
    });
    expect(file.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(file.headers.get("content-encoding")).toBe("gzip");
    expect((await file.bytes()).length).toBeLessThan(script.length);
    const again = await send(console, "/assets/app-1.js", { headers: { "if-none-match": '"2"' } });
    expect(again.status).toBe(304);
    for (const path of ["/assets/other.js", "/assets/../index.html", "/assets/%2e%2e%2findex.html", "/package.json"]) {
      expect((await send(console, path)).status).toBe(404);
    }
    const missing = await send(console, "/assets/other.js", { headers: { accept: "text/html" } });
    expect(missing.status).toBe(404);
  });

  test("can only be read", async () => {
    expect((await send(await open(), "/", { method: "POST", body: "" })).status).toBe(405);
  });
});

test("the log has no token, no cookie and no query", () => {
  expect(logged.join("\n")).not.toMatch(/canary|pulumi-console=|\?q=/);
});
