/**
 * HTTP requests to URLs that users give. A host is resolved once, its addresses are checked, and the connection goes to one
 * of these very addresses, with the host's name in TLS and in the Host header: a name server that answers differently the
 * second time changes nothing. Every redirect is checked in the same way.
 *
 * Through a proxy the host's name is sent, because only the proxy may know it, and proxies allow names rather than addresses.
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
  /** Sent to the first URL's origin and to no other. */
  readonly authorization?: string;
  /** PEM of the certificate authorities to trust; the runtime's when absent. */
  readonly ca?: string;
  /** Names the proxies to use; without it every connection is direct. */
  readonly environment?: Environment;
  /** A redirect is returned as it is. */
  readonly redirects?: "follow" | "return";
  readonly signal?: AbortSignal;
  /** The system's resolver when absent. */
  readonly lookup?: Lookup;
}

export interface HttpResponse {
  readonly status: number;
  /** Of a redirect. */
  readonly location?: string;
  readonly body: AsyncIterable<Uint8Array>;
  /** Ends the connection, whether or not the body was read. */
  close(): void;
}

export type HttpResult =
  /** `url` is the one that answered, after redirects. */
  | { readonly kind: "answered"; readonly url: URL; readonly response: HttpResponse }
  /** The URL, or one that it redirects to, may not be requested. */
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unreachable"; readonly message: string };

const maxRedirects = 5;
const idleMs = 30_000;
/** A whole exchange: what is large comes from within the cluster, and not through a proxy. */
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
    if (!next) return unreachable(`${url.host} redirects to something that is not a URL`);
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
    return refused(`${url.protocol}// is not allowed here`);
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

function headersOf({ headers, authorization, isSameOrigin }: Hop): Record<string, string> {
  return { ...headers, ...(authorization !== undefined && isSameOrigin && { authorization }) };
}

async function direct(url: URL, hop: Hop, addresses: readonly string[]): Promise<HttpResponse> {
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options: RequestOptions = {
    method: hop.method ?? "GET",
    lookup: pinned(addresses),
    agent: false,
    timeout: idleMs,
    headers: headersOf(hop),
    ...(hop.ca !== undefined && { ca: hop.ca }),
    ...(hop.signal && { signal: hop.signal }),
  };
  const sent = send(url, options, resolve);
  sent.on("timeout", () => sent.destroy(new Error(`no answer within ${idleMs / 1000} s`)));
  sent.on("error", reject);
  sent.end();
  const response = await promise;
  const { location } = response.headers;
  return {
    ...statusOf(response.statusCode ?? 0, location),
    body: response as AsyncIterable<Buffer>,
    close: () => void response.destroy(),
  };
}

/** Answers a look-up with the addresses that were checked. */
function pinned(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_, options, callback) => {
    const [first] = all;
    if (options.all || !first) callback(null, all);
    else callback(null, first.address, first.family);
  };
}

/** The one request that uses `fetch`: the runtime's `node:https` knows no proxies. */
async function throughProxy(url: URL, hop: Hop, proxy: string): Promise<HttpResponse> {
  const closed = new AbortController();
  const signals = [closed.signal, AbortSignal.timeout(proxiedMs), ...(hop.signal ? [hop.signal] : [])];
  const response = await fetch(url, {
    method: hop.method ?? "GET",
    headers: headersOf(hop),
    redirect: "manual",
    proxy,
    keepalive: false,
    signal: AbortSignal.any(signals),
    ...(hop.ca !== undefined && { tls: { ca: hop.ca } }),
  });
  return {
    ...statusOf(response.status, response.headers.get("location") ?? undefined),
    body: response.body ?? new ReadableStream<Uint8Array>({ start: (controller) => controller.close() }),
    close: () => closed.abort(),
  };
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

function statusOf(status: number, location: string | undefined): Pick<HttpResponse, "status" | "location"> {
  return { status, ...(location !== undefined && redirects.has(status) && { location }) };
}
