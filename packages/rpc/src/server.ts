/** The agent's end: HTTPS requests become calls of an `AgentService`, its answers and streams become responses. */
import type { Static, TSchema } from "typebox";
import { listen, type Listener } from "./bun-listen.ts";
import { parseRequest } from "./check.ts";
import { calls, pathOf, streams } from "./contract.ts";
import { fail, statusOf, succeed, type AgentError, type Reply } from "./errors.ts";
import { frameStream } from "./frames.ts";
import type { InfoResult } from "./info.ts";
import { heartbeatMs, maxBodyBytes } from "./limits.ts";
import type { PrepareMessage } from "./prepare.ts";
import {
  RunReference,
  type CancelRequest,
  type CancelResult,
  type OutputsMessage,
  type OutputsRequest,
  type RunId,
  type StartRequest,
  type StartResult,
  type WatchMessage,
  type WatchRequest,
} from "./run.ts";
import type { PrepareRequest } from "./source.ts";
import type { Credentials } from "./tls.ts";
import { PrepareRequestV1, StartRequestV1 } from "./v1.ts";
import { contractVersions, prepareFromV1, protocolVersion, vocabularies, type ContractVersion } from "./versions.ts";
import { fitAnswer, fitError } from "./vocabulary.ts";

export type Answer<T> = Promise<Reply<T, AgentError>>;
export type Messages<T> = Promise<Reply<AsyncIterable<T>, AgentError>>;

/** Refusals are data. A stream's `signal` aborts when nobody reads it any more. */
export interface AgentService {
  info(): Answer<InfoResult>;
  /** The state of a run that the agent knows, whatever else the request to start it says; undefined without such a run. */
  attach(runId: RunId): Promise<Awaited<Answer<StartResult>> | undefined>;
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

/** The paths of every version that is spoken. */
function routesOf(options: ServeOptions): ReadonlyMap<string, Route> {
  const routes = contractVersions.flatMap((version) =>
    Object.entries(routesIn(version, options)).map(([method, route]) => [pathOf(version, method), route] as const),
  );
  return new Map(routes);
}

function routesIn(version: ContractVersion, options: ServeOptions): Readonly<Record<string, Route>> {
  const { service } = options;
  const to = { ...options, version };
  return {
    info: callRoute(to, calls.info, () => service.info()),
    start: startRoute(to, service),
    cancel: callRoute(to, { ...calls.cancel, forRun: (runId) => ({ runId }) }, (request) => service.cancel(request)),
    prepare: prepareRoute(to, service),
    watch: streamRoute(to, { ...streams.watch, forRun: (runId) => ({ runId, fromSeq: 1 }) }, (request, signal) =>
      service.watch(request, signal),
    ),
    outputs: streamRoute(to, streams.outputs, (request, signal) => service.outputs(request, signal)),
  };
}

async function handle(options: ServeOptions, routes: ReadonlyMap<string, Route>, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const route = request.method === "POST" ? routes.get(pathname) : undefined;
  if (!route) return refuse(fail("unknownMethod", "the agent has no such method").error);
  try {
    return await route(await request.text());
  } catch (error) {
    const method = pathname.slice(pathname.lastIndexOf("/") + 1);
    options.onFault(method, error);
    return refuse(fail("internal", `the agent failed in ${method}: its log says why`).error);
  }
}

interface Serving extends ServeOptions {
  readonly version: ContractVersion;
}

/** A known run is answered for before anything else in the request is checked: its operation may be of another version. */
function startRoute(to: Serving, service: AgentService): Route {
  const start = callRoute(
    to,
    { ...calls.start, request: to.version === 1 ? StartRequestV1 : calls.start.request },
    (request) => service.start(request),
  );
  return async (body) => {
    const run = parseRequest(RunReference, body);
    const known = run.ok ? await service.attach(run.value.runId) : undefined;
    return known ? answer(to, calls.start.name, known) : await start(body);
  };
}

function prepareRoute(to: Serving, service: AgentService): Route {
  if (to.version === protocolVersion) {
    return streamRoute(to, streams.prepare, (request, signal) => service.prepare(request, signal));
  }
  const ofVersion1 = { ...streams.prepare, request: PrepareRequestV1 };
  return streamRoute(to, ofVersion1, (request, signal) => service.prepare(prepareFromV1(request), signal));
}

interface Method<Q extends TSchema> {
  readonly name: string;
  readonly request: Q;
  /** For a request about a run: what it is read as where only its run can be read. */
  readonly forRun?: (runId: RunId) => Static<Q>;
}

function readRequest<Q extends TSchema>(
  { name, request, forRun }: Method<Q>,
  body: string,
): Reply<Static<Q>, AgentError> {
  const parsed = parseRequest(request, body);
  if (parsed.ok) return succeed(parsed.value);
  const run = parseRequest(RunReference, body);
  return forRun && run.ok ? succeed(forRun(run.value.runId)) : fail("invalidRequest", `${name}: ${parsed.problem}`);
}

function callRoute<Q extends TSchema, A>(
  to: Serving,
  call: Method<Q>,
  serve: (request: Static<Q>) => Answer<A>,
): Route {
  return async (body) => {
    const request = readRequest(call, body);
    return answer(to, call.name, request.ok ? await serve(request.value) : request);
  };
}

function answer(to: Serving, method: string, reply: Reply<unknown, AgentError>): Response {
  if (!reply.ok) return refuse(errorIn(to, reply.error));
  const fitted = fitAnswer(method, reply.value, vocabularies[to.version]);
  return Response.json(fitted.kind === "known" ? fitted.value : reply.value);
}

function streamRoute<Q extends TSchema, M>(
  to: Serving,
  stream: Method<Q>,
  serve: (request: Static<Q>, signal: AbortSignal) => Messages<M>,
): Route {
  return async (body) => {
    const request = readRequest(stream, body);
    if (!request.ok) return refuse(request.error);
    const unread = new AbortController();
    const reply = await serve(request.value, unread.signal);
    if (!reply.ok) return refuse(errorIn(to, reply.error));
    const frames = frameStream({
      messages: to.version === protocolVersion ? reply.value : messagesIn(to, stream.name, reply.value),
      unread,
      heartbeatMs: to.heartbeatMs ?? heartbeatMs,
      onError: (error) => {
        to.onFault(stream.name, error);
        return fail("internal", `the agent failed in ${stream.name}: its log says why`).error;
      },
    });
    return new Response(frames, { headers: { "content-type": "application/x-ndjson" } });
  };
}

/** Without the messages that an older operator would not understand. */
async function* messagesIn(to: Serving, method: string, messages: AsyncIterable<unknown>): AsyncGenerator {
  for await (const message of messages) {
    const fitted = fitAnswer(method, message, vocabularies[to.version]);
    if (fitted.kind === "known") yield fitted.value;
  }
}

function errorIn(to: Serving, error: AgentError): AgentError {
  return fitError(error, vocabularies[to.version], statusOf(error.code)) as AgentError;
}

function refuse(error: AgentError): Response {
  return Response.json({ error }, { status: statusOf(error.code) });
}
