/** Requests to the API server with the caller's credentials. Only the headers that are set here are sent. */
import { version } from "@pko/api";
import { fetchTransport, isObject, type Credentials, type HttpRequest } from "@pko/kube";

export const userAgent = `pulumi-console/${version}`;

export interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  readonly query?: URLSearchParams;
  readonly accept: string;
  readonly body?: { readonly contentType: string; readonly value: object };
  /** Aborts when the browser disconnects. */
  readonly signal: AbortSignal;
}

/** No response arrived, or one that says only that the API server has failed. */
export class UnreachableError extends Error {
  readonly code: string;

  constructor(cause: unknown) {
    const code = isObject(cause) && typeof cause["code"] === "string" ? cause["code"] : "ERROR";
    super(`no response from the API server (${code})`, { cause });
    this.name = "UnreachableError";
    this.code = code;
  }
}

const responseTimeoutMs = 30_000;

/** The response, whatever its status. */
export async function callApi(credentials: Credentials, request: UpstreamRequest): Promise<Response> {
  const response = await send(credentials, request, false);
  if (response.status !== 401) return response;
  // The plugin of a kubeconfig may have a newer token. The API server has not processed the request.
  const before = await credentials.access();
  const renewed = await credentials.access(true).catch(() => before);
  if (renewed.token === before.token && renewed.tls.cert === before.tls.cert) return response;
  await response.body?.cancel();
  return await send(credentials, request, true);
}

async function send(credentials: Credentials, request: UpstreamRequest, freshConnection: boolean): Promise<Response> {
  const { method, path, query, accept, body, signal } = request;
  const timeout = new AbortController();
  const timer = setTimeout(
    () => timeout.abort(Object.assign(new Error("timeout"), { code: "TIMEOUT" })),
    responseTimeoutMs,
  );
  try {
    const { token, tls } = await credentials.access();
    const search = query && query.size > 0 ? `?${query.toString()}` : "";
    const outgoing: HttpRequest = {
      method,
      url: `${credentials.server}${path}${search}`,
      headers: {
        accept,
        "user-agent": userAgent,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body && { "content-type": body.contentType }),
      },
      ...(body && { body: JSON.stringify(body.value) }),
      tls,
      ...(credentials.proxy !== undefined && { proxy: credentials.proxy }),
      signal: AbortSignal.any([signal, timeout.signal]),
      // The server may be closing a pooled connection, and a write must not be sent twice.
      freshConnection: freshConnection || method !== "GET",
    };
    return await fetchTransport(outgoing);
  } catch (error) {
    throw new UnreachableError(error);
  } finally {
    clearTimeout(timer);
  }
}

export type Identity =
  /** The name is absent if the API server does not say it. */
  { readonly kind: "known"; readonly user?: string } | { readonly kind: "rejected" };

/** The API server has authenticated the user, but does not allow SelfSubjectReviews, or is too old for them. */
const namelessStatuses: ReadonlySet<number> = new Set([403, 404]);

/** Who the API server thinks the user is. An API server that fails has not authenticated anyone. */
export async function whoAmI(credentials: Credentials, signal: AbortSignal): Promise<Identity> {
  const apiVersion = "authentication.k8s.io/v1";
  const response = await callApi(credentials, {
    method: "POST",
    path: `/apis/${apiVersion}/selfsubjectreviews`,
    accept: "application/json",
    body: { contentType: "application/json", value: { apiVersion, kind: "SelfSubjectReview" } },
    signal,
  });
  if (response.status === 401) return { kind: "rejected" };
  if (!response.ok) {
    await response.body?.cancel();
    if (!namelessStatuses.has(response.status)) throw new UnreachableError({ code: `HTTP ${response.status}` });
    return { kind: "known" };
  }
  const review = (await response.json()) as { status?: { userInfo?: { username?: string } } };
  const user = review.status?.userInfo?.username;
  return { kind: "known", ...(user !== undefined && { user }) };
}
