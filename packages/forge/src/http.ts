/**
 * Requests to the API of a forge. The URL comes from a tenant, so they are made with `request` of packages/git: only to checked
 * addresses, with limits of time and size. A redirect is followed only within its origin, so credentials and content stay there.
 */
import {
  request,
  type Connections,
  type Environment,
  type HttpResponse,
  type Lookup,
  type NetworkPolicy,
} from "@pko/git";
import { readText } from "@pko/rpc";

import { ForgeError, ResponseTooLarge } from "./errors.ts";

export type ForgeMethod = "GET" | "POST" | "PUT" | "PATCH";

export interface ForgeRequest {
  readonly method: ForgeMethod;
  readonly url: URL;
  readonly authorization: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
  /** In PEM, instead of the CAs that the operator trusts. */
  readonly ca?: string;
}

export interface ForgeResponse {
  readonly status: number;
  header(name: string): string | undefined;
  readonly text: string;
}

/** Throws a ForgeError if there is no response. */
export type ForgeHttp = (request: ForgeRequest) => Promise<ForgeResponse>;

export interface ForgeHttpOptions {
  readonly policy: NetworkPolicy;
  /** The environment with the proxy variables. */
  readonly environment?: Environment;
  /** The CAs that the operator trusts, in PEM; by default those of the runtime. */
  readonly ca?: string;
  readonly lookup?: Lookup;
  readonly connections?: Connections;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 15_000;
/** A page of 100 pull requests has less than 3 MB at GitHub, which repeats both repositories in each, unless their descriptions are long. */
const maxResponseBytes = 8 * 1024 * 1024;
const maxRedirects = 3;
const agent = "pulumi-kubernetes-operator";

export function forgeHttp(options: ForgeHttpOptions): ForgeHttp {
  return async (forgeRequest) => {
    let { url } = forgeRequest;
    for (let hop = 0; hop <= maxRedirects; hop += 1) {
      const response = await sendOnce({ ...forgeRequest, url }, options);
      const next = response.location === undefined ? undefined : redirectTarget(url, response.location);
      if (next === undefined) return response;
      url = next;
    }
    throw new ForgeError("unavailable", `${url.host} redirects more than ${maxRedirects} times`);
  };
}

/** A renamed repository is redirected within the API. */
function redirectTarget(from: URL, location: string): URL {
  const next = URL.parse(location, from);
  if (next?.origin !== from.origin) {
    throw new ForgeError("invalid", `${from.host} redirects to another host, which is not followed; check the URL`);
  }
  return next;
}

type Answer = ForgeResponse & Pick<HttpResponse, "location">;

async function sendOnce(forgeRequest: ForgeRequest, options: ForgeHttpOptions): Promise<Answer> {
  const { method, url, body, authorization } = forgeRequest;
  const { signal, timeoutMs = defaultTimeoutMs, policy, environment, lookup, connections } = options;
  const limit = AbortSignal.timeout(timeoutMs);
  const ca = forgeRequest.ca ?? options.ca;
  try {
    const result = await request(url, {
      policy,
      method,
      authorization,
      headers: { "user-agent": agent, ...forgeRequest.headers, ...(body && { "content-type": "application/json" }) },
      redirects: "return",
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      ...(body && { body: JSON.stringify(body) }),
      ...(environment && { environment }),
      ...(ca !== undefined && { ca }),
      ...(lookup && { lookup }),
      ...(connections && { connections }),
    });
    if (result.kind === "refused") throw new ForgeError("invalid", result.message);
    if (result.kind === "unreachable") throw new ForgeError("unavailable", result.message);
    return await read(url, result.response);
  } catch (error) {
    if (error instanceof ForgeError || signal?.aborted) throw error;
    throw new ForgeError("unavailable", `${url.host} did not respond within ${timeoutMs / 1000} s`, { cause: error });
  }
}

async function read(url: URL, response: HttpResponse): Promise<Answer> {
  try {
    const { status, location } = response;
    const text = await readText(response.body, maxResponseBytes);
    if (text === undefined) throw new ResponseTooLarge(url.host, maxResponseBytes);
    const header = (name: string): string | undefined => response.header(name);
    return { status, header, text, ...(location !== undefined && { location }) };
  } finally {
    response.close();
  }
}
