/** The one place that calls `Bun.serve`: an HTTPS listener that talks to nobody without a certificate of our authority. */
import { splitBundle, type Credentials } from "./tls.ts";

interface ListenOptions {
  readonly hostname: string;
  readonly port: number;
  readonly credentials: Credentials;
  readonly maxBodyBytes: number;
  readonly handle: (request: Request) => Promise<Response>;
}

export interface Listener {
  readonly port: number;
  /** New connections are handled with these; those that are open keep theirs. */
  renew(credentials: Credentials): void;
  /** Refuses new connections and resolves when the last answer has left, or at once when `force` is set. */
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
    // Seconds. Streams beat more often than this; a peer that vanished is let go.
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
