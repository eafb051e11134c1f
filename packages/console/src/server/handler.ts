/** From a request to its response: the checks that every request must pass, then its route. */
import type { Clock, Logger } from "@pko/kube";

import { apiPrefix, limits, type Session } from "../shared/contract.ts";
import { AddressLimit } from "./address-limit.ts";
import { allowedRequest, type ApiRequest } from "./allow-list.ts";
import type { AssetServer } from "./assets.ts";
import { allowedBody } from "./bodies.ts";
import { isRefusal, readBody } from "./body.ts";
import { cookieHeader, isToken, type Caller, type Callers, type SignIn } from "./callers.ts";
import { maskResponse } from "./mask.ts";
import { messages, unreachable } from "./messages.ts";
import { hostProblem, isLoopbackHost, isSecure, originProblem, type Origins } from "./origin.ts";
import { acceptsGzip, json, refuse, respond } from "./responses.ts";
import { openStream } from "./stream.ts";
import { parseSubscriptions } from "./subscriptions.ts";
import { callApi, UnreachableError, whoAmI } from "./upstream.ts";

export interface HandlerOptions {
  readonly signIn: SignIn;
  readonly callers: Callers;
  readonly origins: Origins;
  readonly assets: AssetServer;
  readonly clock: Clock;
  readonly log: Logger;
}

/** `address` is that of the client, or of the proxy in front of it. */
export type Handler = (request: Request, address: string) => Promise<Response>;

/** Sign-ins of one address: they could be guesses. */
const signInLimit = { burst: 20, refillMs: 500 };

export function consoleHandler(options: HandlerOptions): Handler {
  const signIns = new AddressLimit({ ...signInLimit, clock: options.clock });
  return async (request, address) => {
    try {
      return await route({ ...options, signIns, address }, request);
    } catch (error) {
      if (error instanceof UnreachableError) return refuse(502, unreachable(error.code));
      options.log.error("a request failed", { error, method: request.method });
      return refuse(500, messages.internal);
    }
  };
}

interface Context extends HandlerOptions {
  readonly signIns: AddressLimit;
  readonly address: string;
}

async function route(context: Context, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname === "/healthz" && request.method === "GET") return respond("ok\n", { contentType: "text/plain" });
  const wrongHost = hostProblem(request.headers, context.origins);
  if (wrongHost) return refuse(wrongHost.status, wrongHost.message);
  if (pathname === "/session" || pathname === "/stream" || pathname.startsWith(`${apiPrefix}/`)) {
    return await routeData(context, request, pathname);
  }
  return page(context, request, pathname);
}

/** Files without data, for everyone. */
function page({ assets }: Context, { method, headers }: Request, pathname: string): Response {
  if (method !== "GET") return refuse(405, messages.methodNotAllowed, { allow: "GET" });
  const file = assets.file(pathname, headers);
  if (file) return file;
  const isPage = !pathname.startsWith("/assets/") && headers.get("accept")?.includes("text/html");
  return isPage ? assets.page(headers) : refuse(404, messages.notFound);
}

const methods = ["GET", "POST", "PATCH", "DELETE"];

async function routeData(context: Context, request: Request, pathname: string): Promise<Response> {
  const { method, headers } = request;
  if (!methods.includes(method)) return refuse(405, messages.methodNotAllowed, { allow: methods.join(", ") });
  const foreign = originProblem(request, context.origins);
  if (foreign) return refuse(foreign.status, foreign.message);
  const caller = context.callers.identify(headers);
  if (pathname === "/session" && method !== "GET") return await changeSession(context, request, caller);
  if (!caller) {
    const signedOut: Session = { signedIn: false, mode: context.callers.defaultMode };
    return pathname === "/session" ? json(signedOut) : refuse(401, messages.notSignedIn);
  }
  if (!context.callers.mayRequest(caller, context.address))
    return refuse(429, messages.tooManyRequests, { "retry-after": "5" });
  if (pathname === "/session") return await showSession(context, request, caller);
  if (pathname === "/stream") return method === "GET" ? stream(context, request, caller) : notAllowed(405);
  return await passOn(context, request, caller);
}

const notAllowed = (status: number): Response =>
  refuse(status, status === 405 ? messages.methodNotAllowed : messages.notAllowed);

async function changeSession(context: Context, request: Request, caller: Caller | undefined): Promise<Response> {
  switch (request.method) {
    case "POST":
      return await startSession(context, request);
    case "DELETE": {
      if (caller?.session !== undefined) context.callers.end(caller.session);
      return respond(null, {
        status: 204,
        headers: { "set-cookie": cookieHeader(undefined, isSecure(request.headers)) },
      });
    }
    default:
      return notAllowed(405);
  }
}

async function startSession(context: Context, request: Request): Promise<Response> {
  const { callers, signIn, signIns, clock, address } = context;
  if (!signIns.take(address)) return refuse(429, messages.tooManyRequests, { "retry-after": "5" });
  const body = await readBody(request, ["application/json"], clock);
  if (isRefusal(body)) return refuse(body.status, body.message);
  const token = tokenIn(body);
  if (token === undefined) return refuse(400, messages.tokenInvalid);
  if (signIn.mode === "kubeconfig") return await redeemAddress(context, request, { token, signIn });
  const secure = isSecure(request.headers);
  if (!secure && !isLoopbackHost(request.headers.get("host") ?? "")) return refuse(403, messages.insecure);
  const credentials = callers.credentialsOf(token);
  const session = await describeSession(context, { credentials, request, mode: "token" });
  if (!session.signedIn) return refuse(401, messages.tokenRefused);
  return json(session, { headers: { "set-cookie": cookieHeader(callers.start(credentials), secure) } });
}

interface Address {
  readonly token: string;
  readonly signIn: Extract<SignIn, { mode: "kubeconfig" }>;
}

/** The address can be opened again if the API server does not respond. */
async function redeemAddress(context: Context, request: Request, { token, signIn }: Address): Promise<Response> {
  const { callers } = context;
  if (!callers.isUrlToken(token)) return refuse(401, messages.addressUsed);
  const { credentials } = signIn;
  const session = await describeSession(context, { credentials, request, mode: "kubeconfig" });
  const id = callers.redeem(token);
  if (id === undefined) return refuse(401, messages.addressUsed);
  return json(session, { headers: { "set-cookie": cookieHeader(id, false) } });
}

function tokenIn(body: string): string | undefined {
  try {
    const { token } = JSON.parse(body) as { token?: unknown };
    return typeof token === "string" && isToken(token.trim()) ? token.trim() : undefined;
  } catch {
    return undefined;
  }
}

type Described = Pick<Caller, "credentials" | "mode"> & { readonly request: Request };

async function describeSession({ signIn }: Context, { credentials, request, mode }: Described): Promise<Session> {
  const identity = await whoAmI(credentials, request.signal);
  if (identity.kind === "rejected") return { signedIn: false, mode };
  const { user } = identity;
  const context = signIn.mode === "kubeconfig" ? signIn.context : undefined;
  return { signedIn: true, mode, ...(user !== undefined && { user }), ...(context !== undefined && { context }) };
}

async function showSession(context: Context, request: Request, caller: Caller): Promise<Response> {
  const { credentials, mode } = caller;
  const session = await describeSession(context, { credentials, request, mode });
  if (session.signedIn) caller.usage.isAccepted = true;
  else forget(context, caller);
  return json(session);
}

/** The API server no longer accepts the token. A kubeconfig's plugin may renew it. */
function forget({ callers }: Context, { mode, session }: Caller): void {
  if (mode === "token" && session !== undefined) callers.end(session);
}

function stream(context: Context, request: Request, caller: Caller): Response {
  const { callers, clock, signIn } = context;
  const query = new URL(request.url).searchParams;
  const subscriptions = query.size === 1 ? parseSubscriptions(query.get("q") ?? "") : undefined;
  if (!subscriptions) return refuse(400, messages.badSubscriptions);
  if (caller.usage.streams.size >= limits.streamsPerSession) return refuse(429, messages.tooManyStreams);
  if (callers.streamCount >= limits.streams) return refuse(503, messages.serverBusy, { "retry-after": "30" });
  const { signal, headers } = request;
  // With a kubeconfig, the browser is on the same machine.
  const isCompressed = signIn.mode === "cluster" && acceptsGzip(headers);
  const onUnauthorized = (): void => forget(context, caller);
  return openStream({ caller, subscriptions, clock, signal, onUnauthorized, isCompressed });
}

async function passOn(context: Context, request: Request, caller: Caller): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const api = allowedRequest(request.method, pathname, searchParams);
  if (!api) return notAllowed(403);
  const body = api.bodyKind && (await apiBody(context, request, api));
  if (body instanceof Response) return body;
  const { method, path, query } = api;
  const response = await callApi(caller.credentials, {
    method,
    path,
    query,
    accept: api.accepts === "log" ? "*/*" : "application/json",
    ...(body && { body }),
    signal: request.signal,
  });
  if (response.status === 401) forget(context, caller);
  else if (response.status < 500) caller.usage.isAccepted = true;
  return passedOn(response, api.accepts === "object" && response.ok ? await maskedBody(response) : response.body);
}

/** A page of a list has a limited number of objects. */
async function maskedBody(response: Response): Promise<string> {
  const text = await response.text();
  try {
    return JSON.stringify(maskResponse(JSON.parse(text)));
  } catch (error) {
    throw new UnreachableError(Object.assign(new Error("not JSON", { cause: error }), { code: "NOT_JSON" }));
  }
}

interface ApiBody {
  readonly contentType: string;
  readonly value: object;
}

async function apiBody({ clock }: Context, request: Request, api: ApiRequest): Promise<ApiBody | Response> {
  const contentType = api.method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const text = await readBody(request, [contentType, "application/json"], clock);
  if (isRefusal(text)) return refuse(text.status, text.message);
  const value = allowedBody(api, text);
  return value ? { contentType, value } : refuse(400, messages.notAllowed);
}

/** Status and body of the API server; of its headers only these. Nothing that it sends can become a page. */
function passedOn({ status, headers }: Response, body: string | Response["body"]): Response {
  const isJson = headers.get("content-type")?.startsWith("application/json") === true;
  const retryAfter = headers.get("retry-after");
  return respond(body, {
    status,
    contentType: isJson ? "application/json" : "text/plain; charset=utf-8",
    ...(retryAfter !== null && /^\d+$/.test(retryAfter) && { headers: { "retry-after": retryAfter } }),
  });
}
