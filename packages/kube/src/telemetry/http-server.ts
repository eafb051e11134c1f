/** A small HTTP server for probes and metrics. The only module of the runtime that needs `Bun.serve`. */

export interface Answer {
  readonly status?: number;
  readonly contentType?: string;
  readonly body: string;
}

export interface Listen {
  readonly port: number;
  /** All IPv4 and IPv6 addresses if absent. */
  readonly hostname?: string;
}

/** TLS and access control of an endpoint. */
export interface Protection {
  /** In PEM; plain HTTP if absent. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** The response to a request without access, or undefined to allow it; every request is allowed if absent. */
  readonly refuse?: (request: Request) => Promise<Answer | undefined>;
}

interface HttpServerOptions extends Listen, Protection {
  /** By path. Synchronous: no route waits for anything. */
  readonly routes: Readonly<Record<string, (request: Request) => Answer>>;
  readonly onError: (error: unknown) => void;
}

export interface HttpServer {
  /** The actual port, if 0 was requested. */
  readonly port: number;
  stop(): Promise<void>;
}

export function serveHttp(options: HttpServerOptions): HttpServer {
  const routes = new Map(Object.entries(options.routes));
  const server = Bun.serve({
    port: options.port,
    ...(options.hostname !== undefined && { hostname: options.hostname }),
    maxRequestBodySize: 1024,
    ...(options.tls && { tls: options.tls }),
    async fetch(request) {
      const route = routes.get(new URL(request.url).pathname);
      if (!route) return text({ status: 404, body: "not found\n" });
      if (request.method !== "GET" && request.method !== "HEAD") return text({ status: 405, body: "GET only\n" });
      return text((await options.refuse?.(request)) ?? route(request));
    },
    error(error) {
      options.onError(error);
      return text({ status: 500, body: "internal error\n" });
    },
  });
  return {
    port: server.port ?? options.port,
    stop: () => server.stop(true),
  };
}

function text({ status = 200, contentType = "text/plain; charset=utf-8", body }: Answer): Response {
  return new Response(body, { status, headers: { "content-type": contentType, "cache-control": "no-store" } });
}
