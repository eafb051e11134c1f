/**
 * Sends one message. The URL comes from users, so the same rules apply as for Git servers (packages/git/src/http.ts): no loopback,
 * link-local or metadata address, whatever name resolves to it. Redirects are not followed, and responses are not read.
 */
import {
  request,
  retryAfter,
  trustedCaCertificates,
  type HttpResponse,
  type Lookup,
  type NetworkPolicy,
} from "@pko/git";

import * as messages from "../messages.ts";
import type { Payload } from "../payload/payload.ts";

/** Where a Notification sends its messages. */
export interface Target {
  readonly url: URL;
  readonly token?: string;
  /** CA certificates in PEM. */
  readonly ca?: string;
}

export const deliveryResults = [
  "delivered",
  "rejected",
  "rateLimited",
  "serverError",
  "redirected",
  "refused",
  "unreachable",
  "timedOut",
] as const;
export type DeliveryResult = (typeof deliveryResults)[number];

export type Sent =
  | { readonly result: "delivered" }
  | {
      readonly result: Exclude<DeliveryResult, "delivered">;
      /** Never contains the URL's path, which may be a secret, nor what the server returned. */
      readonly message: string;
      readonly retryAfterMs?: number;
    };

export interface SendSettings {
  readonly policy: NetworkPolicy;
  /** The operator's environment, for CAs and proxies. */
  readonly inherited?: Readonly<Record<string, string | undefined>>;
  readonly lookup?: Lookup;
  readonly timeoutMs?: number;
}

export type Send = (target: Target, payload: Payload, signal: AbortSignal) => Promise<Sent>;

const defaultTimeoutMs = 10_000;

export function sender(settings: SendSettings): Send {
  const { policy, inherited = {}, lookup, timeoutMs = defaultTimeoutMs } = settings;
  return async ({ url, token, ca: ownCa }, { contentType, body }, signal) => {
    const limit = AbortSignal.timeout(timeoutMs);
    const ca = ownCa ?? (await trustedCaCertificates(inherited));
    try {
      const result = await request(url, {
        policy,
        method: "POST",
        headers: { "content-type": contentType, "user-agent": "pulumi-kubernetes-operator" },
        body,
        redirects: "return",
        environment: inherited,
        signal: AbortSignal.any([signal, limit]),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(ca !== undefined && { ca }),
        ...(lookup && { lookup }),
      });
      if (result.kind !== "answered") return { result: result.kind, message: result.message };
      return resultOf(result.response, url.host);
    } catch (error) {
      if (!limit.aborted || signal.aborted) throw error;
      return { result: "timedOut", message: messages.timedOut(url.host, timeoutMs) };
    }
  };
}

function resultOf(response: HttpResponse, host: string): Sent {
  response.close();
  const { status } = response;
  if (status >= 200 && status < 300) return { result: "delivered" };
  if (status < 400) return { result: "redirected", message: messages.redirected(host, status) };
  const { retryAfterSeconds } = retryAfter(response);
  const retry = retryAfterSeconds === undefined ? {} : { retryAfterMs: retryAfterSeconds * 1000 };
  if (status === 429) return { result: "rateLimited", message: messages.rateLimited(host), ...retry };
  if (status < 500) return { result: "rejected", message: messages.rejected(host, status), ...retry };
  return { result: "serverError", message: messages.serverError(host, status), ...retry };
}
