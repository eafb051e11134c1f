/**
 * Sends a webhook from a replica on standby to the one that leads. The request may contain a secret, so nothing is sent before the
 * leader has presented the certificate that the Lease names. Bun's HTTP clients cannot check that in time.
 */
import { connect } from "node:tls";

import type { Clock } from "@pko/kube";

import type { LeaderAddress } from "./leader-address.ts";

/** Set on forwarded requests, which are not forwarded again. */
export const forwardedHeader = "x-pulumi-forwarded";

export const forwardTimeoutMs = 5000;
/** Of the connection. */
const dropped: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export interface ForwardedHook {
  readonly path: string;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** The leader's status; undefined if it could not be reached. */
export async function forwardHook(to: LeaderAddress, hook: ForwardedHook, clock: Clock): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  // The certificate is compared with the one in the Lease instead.
  const socket = connect({ host: to.host, port: to.port, rejectUnauthorized: false });
  // For the whole exchange: a leader that sends a byte at a time must not hold the request.
  const cancelTimer = clock.after(forwardTimeoutMs, () => resolve(undefined));
  socket.once("error", () => resolve(undefined));
  socket.once("close", () => resolve(undefined));
  socket.once("secureConnect", () => {
    if (socket.getPeerCertificate().fingerprint256 === to.fingerprint) socket.write(requestText(to, hook));
    else resolve(undefined);
  });
  let answer = "";
  socket.on("data", (chunk: Buffer) => {
    answer += chunk.toString("latin1");
    const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(answer) ?? [];
    if (status !== undefined) resolve(Number(status));
  });
  try {
    return await promise;
  } finally {
    cancelTimer();
    socket.destroy();
  }
}

function requestText({ host, port }: LeaderAddress, { path, headers, body }: ForwardedHook): Buffer {
  const kept = [...headers].filter(([name]) => !dropped.has(name)).map(([name, value]) => `${name}: ${value}`);
  const authority = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const own = [`host: ${authority}`, "connection: close", `content-length: ${body.length}`, `${forwardedHeader}: 1`];
  return Buffer.concat([
    Buffer.from(`POST ${path} HTTP/1.1\r\n${[...kept, ...own].join("\r\n")}\r\n\r\n`, "latin1"),
    body,
  ]);
}
