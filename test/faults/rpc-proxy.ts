/** Between the operator and one agent: each call is told to the test, which may cut it short. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";

import { workspaceServerName, type WorkspaceRef } from "@pko/rpc";
import type { Certificate } from "@pko/rpc/pki";

import type { Where } from "./fuse.ts";

interface RpcProxyOptions {
  readonly workspace: WorkspaceRef;
  /** The pod's address, where the operator looks for the agent. */
  readonly hostname: string;
  readonly port: number;
  /** Where the agent really listens. */
  readonly agentPort: number;
  /** The agent's own, and the operator's: both ends take the proxy for the other. */
  readonly agent: Certificate;
  readonly operator: Certificate;
  /** Asked for each call. */
  readonly arrive: (method: string) => Where | undefined;
  /** The operator is to fall now. */
  readonly strike: () => Promise<void>;
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
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  outgoing.on("error", () => gone.abort());
  const body = await textOf(incoming);
  const where = options.arrive(path.split("/").at(-1) ?? "");
  if (where === "before" || where === "cut") {
    if (where === "before") await options.strike();
    outgoing.destroy();
    return;
  }
  const answer = await forward(options, { path, body, signal: gone.signal });
  const type = answer.headers.get("content-type") ?? "";
  const isWhole =
    type === "application/x-ndjson"
      ? await passLines(answer, { outgoing, type, where })
      : await passWhole(answer, { outgoing, type, where });
  if (isWhole) return;
  if (where !== "lost") await options.strike();
  outgoing.destroy();
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

interface Asked {
  readonly path: string;
  readonly body: string;
  readonly signal: AbortSignal;
}

async function forward(options: RpcProxyOptions, { path, body, signal }: Asked): Promise<Response> {
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

interface Way {
  readonly outgoing: ServerResponse;
  readonly type: string;
  readonly where: Where | undefined;
}

/** Whether the caller has heard all of it. */
async function passWhole(answer: Response, { outgoing, type, where }: Way): Promise<boolean> {
  const text = await answer.text();
  if (where !== undefined) return false;
  outgoing.writeHead(answer.status, { "content-type": type });
  outgoing.end(text);
  return true;
}

/** The message with which each stream says all that is left to say. */
const lastWords = /"type":"(done|result|end)"/;

/** "during": cut after the first message; "after" and "lost": before the last one is heard. */
async function passLines(answer: Response, { outgoing, type, where }: Way): Promise<boolean> {
  outgoing.writeHead(answer.status, { "content-type": type });
  outgoing.flushHeaders();
  const decoder = new TextDecoder();
  let open = "";
  for await (const chunk of answer.body ?? []) {
    const lines = (open + decoder.decode(chunk, { stream: true })).split("\n");
    open = lines.pop() ?? "";
    for (const line of lines) {
      if (where !== undefined && where !== "during" && lastWords.test(line)) return false;
      outgoing.write(`${line}\n`);
      if (where === "during") return false;
    }
  }
  outgoing.end();
  return true;
}
