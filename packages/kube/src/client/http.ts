/** How requests leave the process. The one module of the client that needs Bun: `tls` and `proxy` in `fetch`. */

export interface TlsSettings {
  /** Authorities to trust, in PEM; the system's when absent. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** The name the server's certificate must have, when it is not the URL's. */
  readonly serverName?: string;
  /** Trust any server. */
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
  /** Use no connection of the pool: where one fell silent, its neighbours may be dead as well. */
  readonly freshConnection: boolean;
}

/** Rejects with the signal's reason once that aborts, and with an error with a `code` when no answer comes. */
export type Transport = (request: HttpRequest) => Promise<Response>;

export const fetchTransport: Transport = async (request) => {
  const { insecure, ...tls } = request.tls;
  const init: BunFetchRequestInit & { timeout: false } = {
    method: request.method,
    headers: request.headers,
    signal: request.signal,
    // The token goes to the server it is meant for, and nowhere else.
    redirect: "error",
    tls: { ...tls, rejectUnauthorized: !insecure },
    ...(request.body !== undefined && { body: request.body }),
    ...(request.proxy !== undefined && { proxy: request.proxy }),
    ...(request.freshConnection && { keepalive: false }),
    // Bun's own limit ends what was silent for five minutes: the log of a quiet pod, say. Ours are in request.ts.
    timeout: false,
  };
  return await fetch(request.url, init);
};
