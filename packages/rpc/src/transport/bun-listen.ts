/** The only caller of `Bun.serve`: an HTTPS listener that requires a client certificate from our CA. */
import { splitBundle, type Credentials } from "../tls/tls.ts";

interface ListenOptions {
  readonly hostname: string;
  readonly port: number;
  readonly credentials: Credentials;
  readonly maxBodyBytes: number;
  readonly handle: (request: Request) => Promise<Response>;
}

export interface Listener {
  readonly port: number;
  /** New connections use these credentials; open connections keep the old ones. */
  renew(credentials: Credentials): void;
  /** Refuses new connections and resolves after the last response, or immediately when `force` is set. */
  stop(force: boolean): Promise<void>;
}

export function listen(options: ListenOptions): Listener {
  let server = serve(options);
  const port = server.port ?? options.port;
  return {
    port,
    // `Server.reload` keeps the old certificate (measured, Bun 1.4.4): a second server takes over the port instead.
    renew(credentials) {
      const old = server;
      server = serve({ ...options, port, credentials });
      void old.stop(false);
    },
    stop: (force) => server.stop(force),
  };
}

function serve(options: ListenOptions): Bun.Server<undefined> {
  return Bun.serve({
    hostname: options.hostname,
    port: options.port,
    reusePort: true,
    // In seconds. Streams send heartbeats more often than this, so only a lost peer times out.
    idleTimeout: 30,
    maxRequestBodySize: options.maxBodyBytes,
    development: false,
    tls: {
      ca: splitBundle(options.credentials.ca),
      cert: options.credentials.cert,
      key: options.credentials.key,
      requestCert: true,
      rejectUnauthorized: true,
    },
    fetch: options.handle,
    error: () => new Response(null, { status: 500 }),
  });
}
