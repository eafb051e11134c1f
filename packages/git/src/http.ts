/**
 * HTTP requests to URLs that users provide. The host is resolved once, its addresses are checked, and the connection uses
 * one of the checked addresses, with the host's name in TLS and in the Host header: DNS rebinding has no effect. Every
 * redirect is checked in the same way.
 *
 * A proxy receives the host's name, because only the proxy may be able to resolve it, and because proxies filter by name.
 */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { isIP, type LookupFunction } from "node:net";

import { resolveHost, type Environment, type Lookup, type NetworkPolicy } from "./addresses.ts";
import type { Connections } from "./connections.ts";
import { proxyFor } from "./proxy.ts";

export interface HttpOptions {
  readonly policy: NetworkPolicy;
  readonly method?: "GET" | "POST" | "PUT" | "PATCH";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Sent only to the first URL's origin. */
  readonly authorization?: string;
  /** The CAs to trust, in PEM; by default those of the runtime. */
  readonly ca?: string;
  /** The environment with the proxy variables; without it every connection is direct. */
  readonly environment?: Environment;
  /** Whether to follow redirects (the default) or to return them. */
  readonly redirects?: "follow" | "return";
  readonly signal?: AbortSignal;
  /** By default that of `connections`, otherwise the system's resolver. */
  readonly lookup?: Lookup;
  /** Keeps connections open between requests; without it, each request opens and closes one. */
  readonly connections?: Connections;
}

export interface HttpResponse {
  readonly status: number;
  /** Only for a redirect. */
  readonly location?: string;
  header(name: string): string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
  /** Ends the response, whether or not the body was read. */
  close(): void;
}

export type HttpResult =
  /** `url` is the one that answered, after redirects. */
  | { readonly kind: "answered"; readonly url: URL; readonly response: HttpResponse }
  /** The URL, or one that it redirects to, is not allowed. */
  | { readonly kind: "refused"; readonly message: string }
  /** `error` is that of the connection, if one was tried. */
  | { readonly kind: "unreachable"; readonly message: string; readonly error?: unknown };

const maxRedirects = 5;
const idleMs = 30_000;
/** The limit for a whole request: large downloads come from the cluster and not through a proxy. */
const proxiedMs = 60_000;

export async function request(from: URL, options: HttpOptions): Promise<HttpResult> {
  let url = from;
  for (let hop = 0; hop <= maxRedirects; hop += 1) {
    const result = await requestOnce(url, { ...options, isSameOrigin: url.origin === from.origin });
    if (result.kind !== "answered" || options.redirects === "return") return result;
    const { location } = result.response;
    if (location === undefined) return result;
    result.response.close();
    const next = URL.parse(location, url);
    if (!next) return unreachable(`${url.host} returned a redirect without a valid URL`);
    url = next;
  }
  return unreachable(`${from.host} redirects more than ${maxRedirects} times`);
}

const refused = (message: string): HttpResult => ({ kind: "refused", message });
const unreachable = (message: string): HttpResult => ({ kind: "unreachable", message });

type Hop = HttpOptions & { readonly isSameOrigin: boolean };

async function requestOnce(url: URL, hop: Hop): Promise<HttpResult> {
  const { policy, environment = {}, connections } = hop;
  const lookup = hop.lookup ?? connections?.lookup;
  if (url.protocol !== "https:" && !(url.protocol === "http:" && policy.allowHttp)) {
    return refused(
      `the URL ${url.protocol}//${url.host} is not allowed; use https, or set the chart's value git.allowHttp for http`,
    );
  }
  // Otherwise, the error of the connection would show the value.
  if (!Object.values(headersFor(hop)).every((value) => headerForm.test(value))) {
    return refused(`the credentials for ${url.host} have characters that HTTP does not allow`);
  }
  const proxy = proxyFor(url, environment);
  const resolved = await resolveHost(url.hostname, policy, lookup);
  if (resolved.kind === "forbidden") return refused(resolved.message);
  try {
    if (proxy !== undefined) return { kind: "answered", url, response: await throughProxy(url, hop, proxy) };
    if (resolved.kind === "unknown") return unreachable(resolved.message);
    const send = connections ? keptAlive(connections) : direct;
    return { kind: "answered", url, response: await send(url, hop, resolved.addresses) };
  } catch (error) {
    if (hop.signal?.aborted) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: "unreachable", message: `${url.host} cannot be reached: ${reason}`, error };
  }
}

const headerForm = /^[\t\x20-\x7e\x80-\xff]*$/;

function headersFor({ headers, authorization, isSameOrigin }: Hop): Record<string, string> {
  return { ...headers, ...(authorization !== undefined && isSameOrigin && { authorization }) };
}

async function direct(url: URL, hop: Hop, addresses: readonly string[]): Promise<HttpResponse> {
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options: RequestOptions = {
    method: hop.method ?? "GET",
    lookup: pinnedLookup(addresses),
    agent: false,
    timeout: idleMs,
    headers: headersFor(hop),
    ...(hop.ca !== undefined && { ca: hop.ca }),
    ...(hop.signal && { signal: hop.signal }),
  };
  const sent = send(url, options, resolve);
  sent.on("timeout", () => sent.destroy(new Error(`no response within ${idleMs / 1000} s`)));
  sent.on("error", reject);
  sent.end(hop.body);
  const response = await promise;
  const { location } = response.headers;
  return {
    ...statusAndLocation(response.statusCode ?? 0, location),
    header: (name) => response.headers[name]?.toString(),
    body: response as AsyncIterable<Buffer>,
    close: () => void response.destroy(),
  };
}

/** A lookup function that returns the checked addresses. */
function pinnedLookup(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_, options, callback) => {
    const [first] = all;
    if (options.all || !first) callback(null, all);
    else callback(null, first.address, first.family);
  };
}

type Send = (url: URL, hop: Hop, addresses: readonly string[]) => Promise<HttpResponse>;

/** Connects to a checked address with the host's name in TLS and in the Host header. */
function keptAlive(connections: Connections): Send {
  return async (url, hop, addresses) => {
    const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
    const address = await connections.reachable(addresses, port, hop.signal);
    const target = new URL(url);
    target.hostname = address.includes(":") ? `[${address}]` : address;
    const named = isIP(url.hostname.replaceAll(/[[\]]/g, "")) === 0 && { serverName: url.hostname };
    try {
      return await fetched(hop, (init) =>
        connections.fetch(target, {
          ...init,
          headers: { ...headersFor(hop), host: url.host },
          // Otherwise the variables of this process could name one for the address.
          proxy: false,
          tls: { ...named, ...(hop.ca !== undefined && { ca: hop.ca }) },
        }),
      );
    } catch (error) {
      connections.distrust(address, port);
      throw error;
    }
  };
}

/** Uses `fetch`, because Bun's `node:https` does not support proxies. */
async function throughProxy(url: URL, hop: Hop, proxy: string): Promise<HttpResponse> {
  const limited = { ...hop, signal: withTimeout(hop.signal, proxiedMs) };
  return await fetched(limited, (init) =>
    fetch(url, { ...init, proxy, keepalive: false, ...(hop.ca !== undefined && { tls: { ca: hop.ca } }) }),
  );
}

function withTimeout(signal: AbortSignal | undefined, ms: number): AbortSignal {
  return AbortSignal.any([AbortSignal.timeout(ms), ...(signal ? [signal] : [])]);
}

async function fetched(hop: Hop, send: (init: BunFetchRequestInit) => Promise<Response>): Promise<HttpResponse> {
  const closed = new AbortController();
  const response = await send({
    method: hop.method ?? "GET",
    headers: headersFor(hop),
    redirect: "manual",
    signal: AbortSignal.any([closed.signal, ...(hop.signal ? [hop.signal] : [])]),
    ...(hop.body !== undefined && { body: hop.body }),
  });
  return {
    ...statusAndLocation(response.status, response.headers.get("location") ?? undefined),
    header: (name) => response.headers.get(name) ?? undefined,
    body: response.body ?? new ReadableStream<Uint8Array>({ start: (controller) => controller.close() }),
    close: () => closed.abort(),
  };
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

function statusAndLocation(status: number, location: string | undefined): Pick<HttpResponse, "status" | "location"> {
  return { status, ...(location !== undefined && redirectStatuses.has(status) && { location }) };
}
