/** Messages to real HTTP servers. */
import { expect, test } from "bun:test";
import { selfSignedCertificate } from "@pko/rpc/pki";

import { sender } from "./send.ts";

const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1"] };
const payload = { contentType: "application/json", body: '{"text":"hello"}' };
const never = new AbortController().signal;

/** A server with one response. Requests are kept. */
function sink(respond: (request: Request) => Response | Promise<Response>) {
  const requests: { readonly headers: Headers; readonly body: string; readonly path: string }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      requests.push({ headers: request.headers, body: await request.text(), path: new URL(request.url).pathname });
      return await respond(request);
    },
  });
  const url = new URL(`http://127.0.0.1:${server.port}/secret-path`);
  return { url, requests, [Symbol.dispose]: () => void server.stop(true) };
}

test("a message is posted with its content type, and with the token", async () => {
  using server = sink(() => new Response("ok"));
  expect(await sender({ policy })({ url: server.url, token: "t0ken" }, payload, never)).toEqual({
    result: "delivered",
  });
  const [request] = server.requests;
  expect([request?.body, request?.path]).toEqual([payload.body, "/secret-path"]);
  expect(request?.headers.get("content-type")).toBe("application/json");
  expect(request?.headers.get("authorization")).toBe("Bearer t0ken");
});

test.each([
  [202, {}, { result: "delivered" }],
  [403, {}, { result: "rejected" }],
  [429, { "retry-after": "120" }, { result: "rateLimited", retryAfterMs: 120_000 }],
  [500, {}, { result: "serverError" }],
  [503, { "retry-after": "7" }, { result: "serverError", retryAfterMs: 7000 }],
] as const)("status %d", async (status, headers, expected) => {
  using server = sink(() => new Response("a body with a canary", { status, headers }));
  const sent = await sender({ policy })({ url: server.url }, payload, never);
  expect(sent).toMatchObject(expected);
  for (const hidden of ["secret-path", "canary"]) expect(JSON.stringify(sent)).not.toContain(hidden);
});

test("a redirect is not followed", async () => {
  using elsewhere = sink(() => new Response("ok"));
  using server = sink(() => Response.redirect(elsewhere.url.href, 307));
  expect(await sender({ policy })({ url: server.url, token: "t0ken" }, payload, never)).toMatchObject({
    result: "redirected",
  });
  expect(elsewhere.requests).toEqual([]);
});

test("a sink that hangs is given up", async () => {
  using server = sink(() => new Promise<Response>(() => undefined));
  const sent = await sender({ policy, timeoutMs: 50 })({ url: server.url }, payload, never);
  expect(sent).toMatchObject({ result: "timedOut" });
  expect(JSON.stringify(sent)).not.toContain("secret-path");
});

test("a response without an end is not read", async () => {
  const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) });
  using server = sink(() => new Response(endless));
  expect(await sender({ policy })({ url: server.url }, payload, never)).toEqual({ result: "delivered" });
});

test.each([
  ["the metadata service", "http://169.254.169.254/latest", policy, "refused"],
  ["this pod", "http://127.0.0.1:1/x", { ...policy, allowedAddresses: [] }, "refused"],
  ["plain http, unless it is allowed", "http://127.0.0.1:1/x", { ...policy, allowHttp: false }, "refused"],
  ["a port that nobody serves", "http://127.0.0.1:1/x", policy, "unreachable"],
] as const)("%s is not a sink", async (...row) => {
  const [, url, rules, result] = row;
  const sent = await sender({ policy: rules })({ url: new URL(url) }, payload, never);
  expect(sent.result).toBe(result);
});

test("a name that resolves to the metadata service is refused", async () => {
  const lookup = async () => ["169.254.169.254"];
  const sent = await sender({ policy, lookup })({ url: new URL("https://sink.example") }, payload, never);
  expect(sent.result).toBe("refused");
});

test("a server with a private CA is trusted only with its certificate", async () => {
  const tls = await selfSignedCertificate("localhost", new Date());
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", tls, fetch: () => new Response("ok") });
  const url = new URL(`https://localhost:${server.port}/x`);
  const lookup = async () => ["127.0.0.1"];
  const send = sender({ policy, lookup });
  expect(await send({ url }, payload, never)).toMatchObject({ result: "unreachable" });
  expect(await send({ url, ca: tls.cert }, payload, never)).toEqual({ result: "delivered" });
});
