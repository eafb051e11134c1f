/** A proxy between the operator and one agent: it reports each call to the test, which may interrupt it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";

import { workspaceServerName, type WorkspaceRef } from "@pko/rpc";
import type { Certificate } from "@pko/rpc/pki";

import type { Where } from "./fuse.ts";

interface RpcProxyOptions {
  readonly workspace: WorkspaceRef;
  /** The pod's address, where the operator connects to the agent. */
  readonly hostname: string;
  readonly port: number;
  /** Where the agent really listens. */
  readonly agentPort: number;
  /** The certificates of agent and operator: for each, the proxy impersonates the other. */
  readonly agent: Certificate;
  readonly operator: Certificate;
  /** Called for each call. */
  readonly arrive: (method: string) => Where | undefined;
  /** Called before a call is forwarded to the agent. */
  readonly onForward: (method: string, body: string) => void;
  /** Crashes the operator. */
  readonly crash: () => Promise<void>;
}

export interface RpcProxy {
  stop(): Promise<void>;
}

export async function rpcProxy(options: RpcProxyOptions): Promise<RpcProxy> {
  const { hostname, port, agent } = options;
  const tls = { ca: agent.ca, cert: agent.cert, key: agent.key, requestCert: true, rejectUnauthorized: true };
  const server = createServer(tls, (incoming, outgoing) => {
    serve(options, incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: hostname }, resolve);
  });
  return {
    async stop() {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      server.closeAllConnections();
      await closed;
    },
  };
}

async function serve(options: RpcProxyOptions, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const path = incoming.url ?? "";
  const disconnected = new AbortController();
  outgoing.on("close", () => disconnected.abort());
  outgoing.on("error", () => disconnected.abort());
  const body = await readBody(incoming);
  const method = path.split("/").at(-1) ?? "";
  const where = options.arrive(method);
  if (where === "before" || where === "cut") {
    if (where === "before") await options.crash();
    outgoing.destroy();
    return;
  }
  options.onForward(method, body);
  const response = await forward(options, { path, body, signal: disconnected.signal });
  const type = response.headers.get("content-type") ?? "";
  const isWhole =
    type === "application/x-ndjson"
      ? await forwardLines(response, { outgoing, type, where })
      : await forwardWhole(response, { outgoing, type, where });
  if (isWhole) return;
  if (where !== "lost") await options.crash();
  outgoing.destroy();
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

interface ForwardedCall {
  readonly path: string;
  readonly body: string;
  readonly signal: AbortSignal;
}

async function forward(options: RpcProxyOptions, { path, body, signal }: ForwardedCall): Promise<Response> {
  const { ca, cert, key } = options.operator;
  return await fetch(`https://127.0.0.1:${options.agentPort}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
    keepalive: false,
    signal,
    tls: { ca, cert, key, serverName: workspaceServerName(options.workspace), checkServerIdentity: () => undefined },
  });
}

interface Delivery {
  readonly outgoing: ServerResponse;
  readonly type: string;
  readonly where: Where | undefined;
}

/** Whether the caller received all of it. */
async function forwardWhole(response: Response, { outgoing, type, where }: Delivery): Promise<boolean> {
  const text = await response.text();
  if (where !== undefined) return false;
  outgoing.writeHead(response.status, { "content-type": type });
  outgoing.end(text);
  return true;
}

/** The last message of each stream. */
const lastMessage = /"type":"(done|result|end)"/;

/** "during": interrupted after the first message; "after" and "lost": before the last one is delivered. */
async function forwardLines(response: Response, { outgoing, type, where }: Delivery): Promise<boolean> {
  outgoing.writeHead(response.status, { "content-type": type });
  outgoing.flushHeaders();
  const decoder = new TextDecoder();
  let open = "";
  for await (const chunk of response.body ?? []) {
    const lines = (open + decoder.decode(chunk, { stream: true })).split("\n");
    open = lines.pop() ?? "";
    for (const line of lines) {
      if (where !== undefined && where !== "during" && lastMessage.test(line)) return false;
      outgoing.write(`${line}\n`);
      if (where === "during") return false;
    }
  }
  outgoing.end();
  return true;
}
