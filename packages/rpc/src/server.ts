/** The agent's side: turns HTTPS requests into calls of an `AgentService`, and its answers and streams into responses. */
import type { Static, TSchema } from "typebox";
import { listen, type Listener } from "./transport/bun-listen.ts";
import { parseRequest } from "./json/check.ts";
import { calls, methodPath, streams } from "./contract.ts";
import { fail, httpStatus, succeed, type AgentError, type Reply } from "./errors.ts";
import { frameStream } from "./transport/frames.ts";
import type { InfoResult } from "./info.ts";
import { heartbeatMs, maxBodyBytes } from "./limits.ts";
import type { PrepareMessage } from "./prepare.ts";
import type { RecordRequest, RecordResult } from "./record.ts";
import {
  RunReference,
  type CancelRequest,
  type CancelResult,
  type OutputsMessage,
  type OutputsRequest,
  type PlanMessage,
  type PlanRequest,
  type RunId,
  type StartRequest,
  type StartResult,
  type WatchMessage,
  type WatchRequest,
} from "./run.ts";
import type { PrepareRequest } from "./source.ts";
import type { Credentials } from "./tls/tls.ts";
import { PrepareRequestV1, StartRequestV1 } from "./versions/v1.ts";
import {
  contractVersions,
  prepareFromV1,
  protocolVersion,
  vocabularies,
  type ContractVersion,
} from "./versions/versions.ts";
import { translateAnswer, translateError } from "./versions/vocabulary.ts";

export type Answer<T> = Promise<Reply<T, AgentError>>;
export type Messages<T> = Promise<Reply<AsyncIterable<T>, AgentError>>;

/** Expected errors are data. A stream's `signal` aborts when the reader disconnects. */
export interface AgentService {
  info(): Answer<InfoResult>;
  /** The state of a run that the agent knows, without checking the rest of the request; undefined for an unknown run. */
  attach(runId: RunId): Promise<Awaited<Answer<StartResult>> | undefined>;
  start(request: StartRequest): Answer<StartResult>;
  cancel(request: CancelRequest): Answer<CancelResult>;
  prepare(request: PrepareRequest, signal: AbortSignal): Messages<PrepareMessage>;
  watch(request: WatchRequest, signal: AbortSignal): Messages<WatchMessage>;
  outputs(request: OutputsRequest, signal: AbortSignal): Messages<OutputsMessage>;
  plan(request: PlanRequest): Messages<PlanMessage>;
  /** Fails with `unprepared` while the run is active. */
  record(request: RecordRequest): Answer<RecordResult>;
}

interface ServeOptions {
  readonly service: AgentService;
  readonly hostname: string;
  readonly port: number;
  readonly credentials: Credentials;
  /** Called with an unexpected error of a handler. The caller learns only that there was one. */
  readonly onFault: (method: string, error: unknown) => void;
  readonly heartbeatMs?: number;
}

export type AgentServer = Listener;

export function serveAgent(options: ServeOptions): AgentServer {
  const routes = allRoutes(options);
  return listen({
    hostname: options.hostname,
    port: options.port,
    credentials: options.credentials,
    maxBodyBytes,
    handle: (request) => handle(options, routes, request),
  });
}

type Route = (body: string) => Promise<Response>;

/** The routes of every supported version. */
function allRoutes(options: ServeOptions): ReadonlyMap<string, Route> {
  const routes = contractVersions.flatMap((version) =>
    Object.entries(routesOfVersion(version, options)).map(
      ([method, route]) => [methodPath(version, method), route] as const,
    ),
  );
  return new Map(routes);
}

function routesOfVersion(version: ContractVersion, options: ServeOptions): Readonly<Record<string, Route>> {
  const { service } = options;
  const serving = { ...options, version };
  return {
    info: callRoute(serving, calls.info, () => service.info()),
    start: startRoute(serving, service),
    cancel: callRoute(serving, { ...calls.cancel, forRun: (runId) => ({ runId }) }, (request) =>
      service.cancel(request),
    ),
    prepare: prepareRoute(serving, service),
    watch: streamRoute(serving, { ...streams.watch, forRun: (runId) => ({ runId, fromSeq: 1 }) }, (request, signal) =>
      service.watch(request, signal),
    ),
    outputs: streamRoute(serving, streams.outputs, (request, signal) => service.outputs(request, signal)),
    plan: streamRoute(serving, streams.plan, (request) => service.plan(request)),
    record: callRoute(serving, calls.record, (request) => service.record(request)),
  };
}

async function handle(options: ServeOptions, routes: ReadonlyMap<string, Route>, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const route = request.method === "POST" ? routes.get(pathname) : undefined;
  if (!route) return reject(fail("unknownMethod", "the agent does not support this method").error);
  try {
    return await route(await request.text());
  } catch (error) {
    const method = pathname.slice(pathname.lastIndexOf("/") + 1);
    options.onFault(method, error);
    return reject(internalError(method));
  }
}

function internalError(method: string): AgentError {
  return fail("internal", `the agent failed in ${method}; the log of the workspace's pod has the error`).error;
}

interface Serving extends ServeOptions {
  readonly version: ContractVersion;
}

/** Answers for a known run before it checks the rest of the request: the operation may be from another version. */
function startRoute(serving: Serving, service: AgentService): Route {
  const start = callRoute(
    serving,
    { ...calls.start, request: serving.version === 1 ? StartRequestV1 : calls.start.request },
    (request) => service.start(request),
  );
  return async (body) => {
    const run = parseRequest(RunReference, body);
    const known = run.ok ? await service.attach(run.value.runId) : undefined;
    return known ? answer(serving, calls.start.name, known) : await start(body);
  };
}

function prepareRoute(serving: Serving, service: AgentService): Route {
  if (serving.version === protocolVersion) {
    return streamRoute(serving, streams.prepare, (request, signal) => service.prepare(request, signal));
  }
  const prepareV1 = { ...streams.prepare, request: PrepareRequestV1 };
  return streamRoute(serving, prepareV1, (request, signal) => service.prepare(prepareFromV1(request), signal));
}

interface Method<Q extends TSchema> {
  readonly name: string;
  readonly request: Q;
  /** Builds the request from the run's ID when the rest of it does not match the schema. */
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
  serving: Serving,
  call: Method<Q>,
  serve: (request: Static<Q>) => Answer<A>,
): Route {
  return async (body) => {
    const request = readRequest(call, body);
    return answer(serving, call.name, request.ok ? await serve(request.value) : request);
  };
}

function answer(serving: Serving, method: string, reply: Reply<unknown, AgentError>): Response {
  if (!reply.ok) return reject(errorInVersion(serving, reply.error));
  const translated = translateAnswer(method, reply.value, vocabularies[serving.version]);
  return Response.json(translated.kind === "known" ? translated.value : reply.value);
}

function streamRoute<Q extends TSchema, M>(
  serving: Serving,
  stream: Method<Q>,
  serve: (request: Static<Q>, signal: AbortSignal) => Messages<M>,
): Route {
  return async (body) => {
    const request = readRequest(stream, body);
    if (!request.ok) return reject(request.error);
    const disconnected = new AbortController();
    const reply = await serve(request.value, disconnected.signal);
    if (!reply.ok) return reject(errorInVersion(serving, reply.error));
    const frames = frameStream({
      messages:
        serving.version === protocolVersion ? reply.value : messagesInVersion(serving, stream.name, reply.value),
      disconnected,
      heartbeatMs: serving.heartbeatMs ?? heartbeatMs,
      onError: (error) => {
        serving.onFault(stream.name, error);
        return internalError(stream.name);
      },
    });
    return new Response(frames, { headers: { "content-type": "application/x-ndjson" } });
  };
}

/** Skips messages that an older operator would not understand. */
async function* messagesInVersion(serving: Serving, method: string, messages: AsyncIterable<unknown>): AsyncGenerator {
  for await (const message of messages) {
    const translated = translateAnswer(method, message, vocabularies[serving.version]);
    if (translated.kind === "known") yield translated.value;
  }
}

function errorInVersion(serving: Serving, error: AgentError): AgentError {
  return translateError(error, vocabularies[serving.version], httpStatus(error.code)) as AgentError;
}

function reject(error: AgentError): Response {
  return Response.json({ error }, { status: httpStatus(error.code) });
}
