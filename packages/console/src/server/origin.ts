/** Whether a request may come from where it claims to come from. Pure. */
import { consoleHeader, consoleHeaderValue } from "../shared/contract.ts";
import { messages } from "./messages.ts";

export interface Origins {
  /** The values of the header Host that are accepted; any if absent. Those of localhost are accepted on any port if `loopback`. */
  readonly hosts?: readonly string[];
  readonly loopback: boolean;
}

export type Refusal = { readonly status: number; readonly message: string };

const loopbackHost = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/;

export const isLoopbackHost = (host: string): boolean => loopbackHost.test(host);

/** DNS rebinding: a foreign name that resolves to the console's address has another Host. */
export function hostProblem(headers: Headers, { hosts, loopback }: Origins): Refusal | undefined {
  const host = headers.get("host")?.toLowerCase() ?? "";
  const isKnown = hosts === undefined ? /^[a-z0-9.:[\]_-]+$/.test(host) : hosts.includes(host);
  return isKnown || (loopback && isLoopbackHost(host)) ? undefined : { status: 403, message: messages.wrongHost };
}

/**
 * A request of another site. A browser sends Origin with every request that changes something, and Sec-Fetch-Site with
 * every request. A form of another site cannot set the console's header.
 */
export function originProblem(request: Pick<Request, "method" | "headers">, origins: Origins): Refusal | undefined {
  const { method, headers } = request;
  const foreign = { status: 403, message: messages.foreignOrigin };
  const site = headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin" && site !== "none") return foreign;
  const origin = headers.get("origin");
  if (origin !== null && !isOwnOrigin(origin, headers, origins)) return foreign;
  if (method === "GET") return undefined;
  if (origin === null) return foreign;
  if (headers.get(consoleHeader) !== consoleHeaderValue) return { status: 403, message: messages.headerMissing };
  return undefined;
}

/** Behind a proxy that replaces Host, the page has one of the configured hosts. */
function isOwnOrigin(origin: string, headers: Headers, { hosts = [] }: Origins): boolean {
  const [, host] = /^https?:\/\/([^/]+)$/.exec(origin.toLowerCase()) ?? [];
  return host !== undefined && (host === headers.get("host")?.toLowerCase() || hosts.includes(host));
}

/** Whether the browser's connection is encrypted; a proxy in front of the console says so. */
export const isSecure = (headers: Headers): boolean =>
  headers.get("x-forwarded-proto")?.split(",")[0]?.trim().toLowerCase() === "https";
