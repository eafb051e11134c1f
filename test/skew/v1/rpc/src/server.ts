/** The agent's end: HTTPS requests become calls of an `AgentService`, its answers and streams become responses. */
import type { Static, TSchema } from "typebox";
import { listen, type Listener } from "./bun-listen.ts";
import { parseJson } from "./check.ts";
import { calls, pathPrefix, streams } from "./contract.ts";
import { fail, statusOf, type AgentError, type Reply } from "./errors.ts";
import { frameStream } from "./frames.ts";
import type { InfoResult } from "./info.ts";
import { heartbeatMs, maxBodyBytes } from "./limits.ts";
import type { PrepareMessage } from "./prepare.ts";
import type {
  CancelRequest,
  CancelResult,
  OutputsMessage,
  OutputsRequest,
  StartRequest,
  StartResult,
  WatchMessage,
  WatchRequest,
} from "./run.ts";
import type { PrepareRequest } from "./source.ts";
import type { Credentials } from "./tls.ts";

export type Answer<T> = Promise<Reply<T, AgentError>>;
export type Messages<T> = Promise<Reply<AsyncIterable<T>, AgentError>>;

/** Refusals are data. A stream's `signal` aborts when nobody reads it any more. */
export interface AgentService {
  info(): Answer<InfoResult>;
  start(request: StartRequest): Answer<StartResult>;
  cancel(request: CancelRequest): Answer<CancelResult>;
  prepare(request: PrepareRequest, signal: AbortSignal): Messages<PrepareMessage>;
  watch(request: WatchRequest, signal: AbortSignal): Messages<WatchMessage>;
  outputs(request: OutputsRequest, signal: AbortSignal): Messages<OutputsMessage>;
}

interface ServeOptions {
  readonly service: AgentService;
  readonly hostname: string;
  readonly port: number;
  readonly credentials: Credentials;
  /** Told of what a handler threw: a fault of the agent, of which the caller learns only that there was one. */
  readonly onFault: (method: string, error: unknown) => void;
  readonly heartbeatMs?: number;
}

export type AgentServer = Listener;

export function serveAgent(options: ServeOptions): AgentServer {
  const routes = routesOf(options);
  return listen({
    hostname: options.hostname,
    port: options.port,
    credentials: options.credentials,
    maxBodyBytes,
    handle: (request) => handle(options, routes, request),
  });
}

type Route = (body: string) => Promise<Response>;

function routesOf(options: ServeOptions): ReadonlyMap<string, Route> {
  const { service } = options;
  return new Map<string, Route>([
    ["info", callRoute(calls.info, () => service.info())],
    ["start", callRoute(calls.start, (request) => service.start(request))],
    ["cancel", callRoute(calls.cancel, (request) => service.cancel(request))],
    ["prepare", streamRoute(options, streams.prepare, (request, signal) => service.prepare(request, signal))],
    ["watch", streamRoute(options, streams.watch, (request, signal) => service.watch(request, signal))],
    ["outputs", streamRoute(options, streams.outputs, (request, signal) => service.outputs(request, signal))],
  ]);
}

async function handle(options: ServeOptions, routes: ReadonlyMap<string, Route>, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const method = pathname.startsWith(pathPrefix) ? pathname.slice(pathPrefix.length) : "";
  const route = request.method === "POST" ? routes.get(method) : undefined;
  if (!route) return refuse(fail("unknownMethod", "the agent has no such method").error);
  try {
    return await route(await request.text());
  } catch (error) {
    options.onFault(method, error);
    return refuse(fail("internal", `the agent failed in ${method}: its log says why`).error);
  }
}

interface Call<Q extends TSchema, A extends TSchema> {
  readonly name: string;
  readonly request: Q;
  readonly answer: A;
}

function callRoute<Q extends TSchema, A extends TSchema>(
  call: Call<Q, A>,
  serve: (request: Static<Q>) => Answer<Static<A>>,
): Route {
  return async (body) => {
    const request = parseJson(call.request, body);
    if (!request.ok) return refuse(fail("invalidRequest", `${call.name}: ${request.problem}`).error);
    const reply = await serve(request.value);
    return reply.ok ? Response.json(reply.value) : refuse(reply.error);
  };
}

interface Stream<Q extends TSchema, M extends TSchema> {
  readonly name: string;
  readonly request: Q;
  readonly message: M;
}

function streamRoute<Q extends TSchema, M extends TSchema>(
  options: ServeOptions,
  stream: Stream<Q, M>,
  serve: (request: Static<Q>, signal: AbortSignal) => Messages<Static<M>>,
): Route {
  return async (body) => {
    const request = parseJson(stream.request, body);
    if (!request.ok) return refuse(fail("invalidRequest", `${stream.name}: ${request.problem}`).error);
    const unread = new AbortController();
    const reply = await serve(request.value, unread.signal);
    if (!reply.ok) return refuse(reply.error);
    const frames = frameStream({
      messages: reply.value,
      unread,
      heartbeatMs: options.heartbeatMs ?? heartbeatMs,
      onError: (error) => {
        options.onFault(stream.name, error);
        return fail("internal", `the agent failed in ${stream.name}: its log says why`).error;
      },
    });
    return new Response(frames, { headers: { "content-type": "application/x-ndjson" } });
  };
}

function refuse(error: AgentError): Response {
  return Response.json({ error }, { status: statusOf(error.code) });
}
