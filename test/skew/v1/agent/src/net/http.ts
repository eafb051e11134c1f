/** GET requests to addresses that were looked at first. Redirects come back to the caller, to be looked at in turn. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { done, failed, type Outcome } from "../outcome.ts";
import type { NetworkPolicy } from "../../../git/src/index.ts";
import { resolveHost } from "./addresses.ts";

interface GetOptions {
  readonly policy: NetworkPolicy;
  /** Sent to the first URL's origin and to no other. */
  readonly authorization?: string;
  readonly ca?: string;
  readonly signal?: AbortSignal;
}

interface Got {
  /** The URL that answered, after redirects. */
  readonly url: URL;
  readonly response: IncomingMessage;
}

const maxRedirects = 5;
const idleMs = 30_000;

export async function getFollowing(from: URL, options: GetOptions): Promise<Outcome<Got>> {
  let url = from;
  for (let hop = 0; hop <= maxRedirects; hop += 1) {
    const scheme = checkScheme(url, options.policy);
    if (!scheme.ok) return scheme;
    const addresses = await resolveHost(url.hostname, options.policy);
    if (!addresses.ok) return addresses;
    const response = await get({ url, addresses: addresses.value, sameOrigin: url.origin === from.origin }, options);
    if (!response.ok) return response;
    const location = redirectOf(response.value);
    if (location === undefined) return done({ url, response: response.value });
    response.value.destroy();
    const next = URL.parse(location, url);
    if (!next) return failed("sourceUnavailable", `${url.host} redirects to something that is not a URL`);
    url = next;
  }
  return failed("sourceUnavailable", `${from.host} redirects more than ${maxRedirects} times`);
}

function checkScheme(url: URL, policy: NetworkPolicy): Outcome<undefined> {
  if (url.protocol === "https:" || (url.protocol === "http:" && policy.allowHttp)) return done(undefined);
  return failed("sourceInvalid", `${url.protocol}// is not allowed here`);
}

/** What an HTTP status that is not success means to whoever asked for a source. */
export function statusFailure(what: string, status: number): Outcome<never> {
  if (status === 401 || status === 403) return failed("sourceUnauthorized", `${what}: access denied (${status})`);
  if (status === 404 || status === 410) return failed("sourceNotFound", `${what}: not found (${status})`);
  return failed("sourceUnavailable", `${what}: the server answered ${status}`);
}

interface Hop {
  readonly url: URL;
  readonly addresses: readonly string[];
  readonly sameOrigin: boolean;
}

async function get(hop: Hop, options: GetOptions): Promise<Outcome<IncomingMessage>> {
  const { url } = hop;
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const { promise, resolve } = Promise.withResolvers<Outcome<IncomingMessage>>();
  const request = send(
    url,
    {
      lookup: pinned(hop.addresses),
      agent: false,
      timeout: idleMs,
      headers: options.authorization && hop.sameOrigin ? { authorization: options.authorization } : {},
      ...(options.ca && { ca: options.ca }),
      ...(options.signal && { signal: options.signal }),
    },
    (response) => resolve(done(response)),
  );
  request.on("timeout", () => request.destroy(new Error("timed out")));
  request.on("error", (error) =>
    resolve(failed("sourceUnavailable", `${url.host} cannot be reached: ${error.message}`)),
  );
  request.end();
  return await promise;
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

function redirectOf(response: IncomingMessage): string | undefined {
  const status = response.statusCode ?? 0;
  return [301, 302, 303, 307, 308].includes(status) ? response.headers.location : undefined;
}
