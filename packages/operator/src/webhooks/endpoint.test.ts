/** The endpoint over HTTPS, with a store that has one Receiver. */
import { afterEach, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:tls";

import type { Receiver } from "@pko/api";
import { logger, manualClock, metricsRegistry, silentLogger, type Logger, type Store } from "@pko/kube";
import { selfSignedCertificate } from "@pko/rpc/pki";

import { pushes } from "../shared/channels/pushes.ts";
import { ActiveReceivers } from "./active-receivers.ts";
import { WebhookEndpoint } from "./endpoint.ts";
import { forwardHook, forwardTimeoutMs } from "./forward.ts";
import { fingerprintOf, type LeaderAddress } from "./leader-address.ts";
import { pathOf } from "./paths.ts";
import { webhookServer, type WebhookServer } from "./server.ts";

const receiver: Receiver = {
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Receiver",
  metadata: { namespace: "team", name: "hooks", uid: "uid-1" },
  spec: { type: "Gitea", secretRef: { name: "hooks" } },
};
const path = pathOf(receiver);
const store = {
  byIndex: (_: string, value: string) => (value === path ? [receiver] : []),
} as unknown as Store<Receiver>;
const certificate = await selfSignedCertificate("webhooks", new Date());

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

interface ServeOptions {
  readonly hostname?: string;
  readonly log?: Logger;
}

function serve(handle: (request: Request) => Promise<Response>, options: ServeOptions = {}): WebhookServer {
  const { hostname = "127.0.0.1", log = silentLogger } = options;
  const server = webhookServer({ listen: { hostname, port: 0 }, certificate, handle, log });
  stops.push(server.start());
  return server;
}

/** An endpoint, and the results that it has counted. It leads, unless there is a leader. */
function endpointOf(leader?: LeaderAddress) {
  const metrics = metricsRegistry();
  const endpoint = new WebhookEndpoint({
    store,
    receivers: new ActiveReceivers(),
    pushes: pushes(),
    metrics,
    isLeading: () => leader === undefined,
    leader: () => leader,
  });
  const counted = (): string[] =>
    [...metrics.expose().matchAll(/result="(\w+)"\} \d+/g)].map(([, result = ""]) => result);
  return { handle: (request: Request) => endpoint.handle(request), counted };
}

/** Sends bytes, and returns everything that arrives until the server ends the connection. */
async function exchange(port: number, text: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => socket.write(text));
  let answer = "";
  socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
  socket.on("close", () => resolve(answer));
  socket.on("error", () => resolve(answer));
  return await promise;
}

const post = (server: WebhookServer): Promise<Response> =>
  fetch(`https://127.0.0.1:${server.port}${path}`, { method: "POST", body: "{}", tls: { rejectUnauthorized: false } });

test.each(["[", "%", "host:99999999"])("the invalid Host header %p is an unknown path, and counted", async (host) => {
  const { handle, counted } = endpointOf();
  const request = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
  expect(await exchange(serve(handle).port, request)).toStartWith("HTTP/1.1 404");
  expect(counted()).toEqual(["unknownPath"]);
});

const unread = [
  ["with an unknown path", "POST /hooks/unknown", 404],
  ["with another method", `PUT ${path}`, 405],
  ["that is too large", `POST ${path}`, 413],
] as const;
test.each(unread)("the rest of a request %s is not read: the connection ends", async (...row) => {
  const [, line, status] = row;
  const request = `${line} HTTP/1.1\r\nhost: host\r\ncontent-length: 1000000000\r\n\r\n{`;
  expect(await exchange(serve(endpointOf().handle).port, request)).toStartWith(`HTTP/1.1 ${status}`);
});

test("unexpected errors are counted, and fill no log", async () => {
  const { handle, counted } = endpointOf();
  const lines: string[] = [];
  const broken = (request: Request): Promise<Response> =>
    handle({ url: request.url, method: "POST" } as unknown as Request);
  const server = serve(broken, { log: logger({ write: (line) => lines.push(line) }) });
  for (let round = 0; round < 20; round++) expect((await post(server)).status).toBe(500);
  expect(counted()).toEqual(["failed"]);
  expect(lines).toHaveLength(5);
});

const statuses = [
  [200, 202],
  [202, 202],
  [400, 400],
  [401, 401],
  [404, 404],
  [405, 503],
  [408, 408],
  [413, 413],
  [429, 429],
  [500, 500],
  [503, 503],
] as const;
test.each(statuses)("the leader's status %i reaches the sender as %i", async (status, expected) => {
  const leader = serve(() => Promise.resolve(new Response(null, { status })));
  const { handle } = endpointOf({ host: "127.0.0.1", port: leader.port, fingerprint: leader.fingerprint });
  expect((await post(serve(handle))).status).toBe(expected);
});

test("a leader with an IPv6 address gets a valid Host header", async () => {
  const hosts: (string | null)[] = [];
  const handle = (request: Request): Promise<Response> => {
    hosts.push(request.headers.get("host"));
    return Promise.resolve(new Response(null, { status: 202 }));
  };
  const leader = serve(handle, { hostname: "::1" });
  const standby = endpointOf({ host: "::1", port: leader.port, fingerprint: leader.fingerprint });
  expect((await post(serve(standby.handle))).status).toBe(202);
  expect(hosts).toEqual([`[::1]:${leader.port}`]);
});

test("a leader that responds a byte at a time has one deadline for the whole response", async () => {
  const clock = manualClock();
  const { promise: hasStarted, resolve: started } = Promise.withResolvers<void>();
  const slow = createServer(certificate, (socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.write("H", () => started()));
  });
  await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve));
  stops.push(() => new Promise((resolve) => slow.close(() => resolve())));
  const { port } = slow.address() as AddressInfo;
  const to = { host: "127.0.0.1", port, fingerprint: fingerprintOf(certificate.cert) };
  const forwarding = forwardHook(to, { path, headers: new Headers(), body: Buffer.from("{}") }, clock);
  await hasStarted;
  await clock.advance(forwardTimeoutMs);
  expect(await forwarding).toBeUndefined();
});
