/** An HTTPS server for the fault proxy. Unlike `Bun.serve`, it sends headers before there is a body, as watches require. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

interface StreamingServer {
  readonly port: number;
  stop(): Promise<void>;
}

interface StreamingServerOptions {
  readonly cert: string;
  readonly key: string;
  /** `clientPort` identifies the connection. The request's signal aborts when the client disconnects. */
  readonly answer: (request: Request, clientPort: number) => Promise<Response>;
}

export async function streamingServer({ cert, key, answer }: StreamingServerOptions): Promise<StreamingServer> {
  const server = createServer({ cert, key }, (incoming, outgoing) => {
    const disconnected = new AbortController();
    outgoing.on("close", () => disconnected.abort());
    outgoing.on("error", () => disconnected.abort());
    void (async () => {
      try {
        const response = await answer(await asRequest(incoming, disconnected.signal), incoming.socket.remotePort ?? 0);
        await send(response, outgoing);
      } catch {
        outgoing.destroy();
      }
    })();
  });
  await new Promise<void>((resolve) => server.listen({ port: 0, host: "127.0.0.1" }, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function asRequest(incoming: IncomingMessage, signal: AbortSignal): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, [value].flat().join(", "));
  return new Request(`https://proxy${incoming.url ?? "/"}`, {
    method: incoming.method ?? "GET",
    headers,
    signal,
    ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
  });
}

async function send(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  for await (const chunk of response.body ?? []) outgoing.write(chunk);
  outgoing.end();
}
