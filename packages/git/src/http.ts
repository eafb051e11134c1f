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
import { proxyFor } from "./proxy.ts";

export interface HttpOptions {
  readonly policy: NetworkPolicy;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent only to the first URL's origin. */
  readonly authorization?: string;
  /** The CAs to trust, in PEM; by default those of the runtime. */
  readonly ca?: string;
  /** The environment with the proxy variables; without it every connection is direct. */
  readonly environment?: Environment;
  /** Whether to follow redirects (the default) or to return them. */
  readonly redirects?: "follow" | "return";
  readonly signal?: AbortSignal;
  /** By default the system's resolver. */
  readonly lookup?: Lookup;
}

export interface HttpResponse {
  readonly status: number;
  /** Only for a redirect. */
  readonly location?: string;
  readonly body: AsyncIterable<Uint8Array>;
  /** Closes the connection, whether or not the body was read. */
  close(): void;
}

export type HttpResult =
  /** `url` is the one that answered, after redirects. */
  | { readonly kind: "answered"; readonly url: URL; readonly response: HttpResponse }
  /** The URL, or one that it redirects to, is not allowed. */
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unreachable"; readonly message: string };

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
  const { policy, environment = {}, lookup } = hop;
  if (url.protocol !== "https:" && !(url.protocol === "http:" && policy.allowHttp)) {
    return refused(
      `the URL ${url.protocol}//${url.host} is not allowed; use https, or set the chart's value git.allowHttp for http`,
    );
  }
  const proxy = proxyFor(url, environment);
  const resolved = await resolveHost(url.hostname, policy, lookup);
  if (resolved.kind === "forbidden") return refused(resolved.message);
  try {
    if (proxy !== undefined) return { kind: "answered", url, response: await throughProxy(url, hop, proxy) };
    if (resolved.kind === "unknown") return unreachable(resolved.message);
    return { kind: "answered", url, response: await direct(url, hop, resolved.addresses) };
  } catch (error) {
    if (hop.signal?.aborted) throw error;
    return unreachable(`${url.host} cannot be reached: ${error instanceof Error ? error.message : String(error)}`);
  }
}

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
  sent.end();
  const response = await promise;
  const { location } = response.headers;
  return {
    ...statusAndLocation(response.statusCode ?? 0, location),
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

/** Uses `fetch`, because Bun's `node:https` does not support proxies. */
async function throughProxy(url: URL, hop: Hop, proxy: string): Promise<HttpResponse> {
  const closed = new AbortController();
  const signals = [closed.signal, AbortSignal.timeout(proxiedMs), ...(hop.signal ? [hop.signal] : [])];
  const response = await fetch(url, {
    method: hop.method ?? "GET",
    headers: headersFor(hop),
    redirect: "manual",
    proxy,
    keepalive: false,
    signal: AbortSignal.any(signals),
    ...(hop.ca !== undefined && { tls: { ca: hop.ca } }),
  });
  return {
    ...statusAndLocation(response.status, response.headers.get("location") ?? undefined),
    body: response.body ?? new ReadableStream<Uint8Array>({ start: (controller) => controller.close() }),
    close: () => closed.abort(),
  };
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

function statusAndLocation(status: number, location: string | undefined): Pick<HttpResponse, "status" | "location"> {
  return { status, ...(location !== undefined && redirectStatuses.has(status) && { location }) };
}
