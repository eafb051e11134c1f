/** The HTTP transport. The only module of the client that needs Bun: for `tls` and `proxy` in `fetch`. */

export interface TlsSettings {
  /** Trusted CA certificates in PEM; the system's if absent. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** The name in the server's certificate, if it differs from the URL's. */
  readonly serverName?: string;
  /** Skip certificate verification. */
  readonly insecure?: boolean;
}

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly tls: TlsSettings;
  readonly proxy?: string;
  readonly signal: AbortSignal;
  /** Do not use a pooled connection: when one connection is dead, the others may be too. */
  readonly freshConnection: boolean;
}

/** Rejects with the signal's reason when it aborts, and with an error that has a `code` when no response arrives. */
export type Transport = (request: HttpRequest) => Promise<Response>;

export const fetchTransport: Transport = async (request) => {
  const { insecure, ...tls } = request.tls;
  const init: BunFetchRequestInit & { timeout: false } = {
    method: request.method,
    headers: request.headers,
    signal: request.signal,
    // A redirect must not send the token to another server.
    redirect: "error",
    tls: { ...tls, rejectUnauthorized: !insecure },
    ...(request.body !== undefined && { body: request.body }),
    ...(request.proxy !== undefined && { proxy: request.proxy }),
    ...(request.freshConnection && { keepalive: false }),
    // Bun would end a connection that is silent for five minutes. The client's own limits are in request.ts.
    timeout: false,
  };
  return await fetch(request.url, init);
};
