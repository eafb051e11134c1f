/** The operator's end: calls of one workspace's agent, dialled by address, known by the name in its certificate. */
import type { Static, TSchema } from "typebox";
import { postSecurely, WrongServer } from "./bun-fetch.ts";
import { checkValue, parseJson, readJson } from "./check.ts";
import { calls, ErrorBody, Frame, pathOf, streams } from "./contract.ts";
import { AgentError, assertNever, errorMessage, succeed, type CallError, type Reply } from "./errors.ts";
import type { InfoResult } from "./info.ts";
import { callTimeoutMs, maxBodyBytes, maxLineBytes, silenceMs } from "./limits.ts";
import { LineTooLong, readLines, readText } from "./lines.ts";
import type { PrepareMessage, PreparePhase, PrepareResult } from "./prepare.ts";
import type {
  CancelRequest,
  CancelResult,
  Output,
  OutputsMessage,
  OutputsRequest,
  StartRequest,
  StartResult,
  WatchRequest,
} from "./run.ts";
import type { PrepareRequest } from "./source.ts";
import type { Credentials } from "./tls.ts";
import {
  agreedVersion,
  infoVersion,
  prepareIn,
  startIn,
  tooOld,
  wrongStack,
  type ContractVersion,
  type Translated,
} from "./versions.ts";
import { fitAnswer, fitError, vocabulary } from "./vocabulary.ts";
import { followRun, type WatchOptions, type WatchUpdate } from "./watch.ts";

interface AgentAddress {
  /** The pod's IP. */
  readonly host: string;
  readonly port: number;
  /** `workspaceServerName` of the workspace. */
  readonly serverName: string;
}

export interface ConnectOptions {
  readonly address: AgentAddress;
  /** Asked for each request, so that a renewed certificate is used at once. */
  readonly credentials: () => Credentials;
  /** Called when the agent's certificate is refused: ours may be outdated. */
  readonly onUntrusted?: () => void;
  readonly callTimeoutMs?: number;
  /** A stream that says nothing for this long is dead. */
  readonly silenceMs?: number;
  /** Given by whoever dials the same agent again, so that the version is agreed on once. */
  readonly agreement?: Agreement;
}

/** The version that is used with one agent process; without one, the agent's `info` decides. */
export interface Agreement {
  version?: ContractVersion;
}

interface CallOptions {
  readonly signal?: AbortSignal;
}

interface PrepareOptions extends CallOptions {
  readonly onPhase?: (phase: PreparePhase) => void;
}

export interface AgentClient {
  info(options?: CallOptions): Promise<Reply<InfoResult>>;
  /** Takes as long as it takes; idempotent, so a broken connection is answered by asking again. */
  prepare(request: PrepareRequest, options?: PrepareOptions): Promise<Reply<PrepareResult>>;
  start(request: StartRequest, options?: CallOptions): Promise<Reply<StartResult>>;
  cancel(request: CancelRequest, options?: CallOptions): Promise<Reply<CancelResult>>;
  outputs(request: OutputsRequest, options?: CallOptions): Promise<Reply<readonly Output[]>>;
  /** Every event once, across broken connections, then the result. Ends after the result or a final error. */
  watch(request: WatchRequest, options?: WatchOptions): AsyncIterable<WatchUpdate>;
}

export function connectAgent(options: ConnectOptions): AgentClient {
  const link: Link = { ...options, agreement: options.agreement ?? {} };
  return {
    info: (call) => askInfo(link, call),
    start: (request, call) => startRun(link, request, call),
    cancel: (request, call) => callAgent(link, calls.cancel, { in: same(request), ...call }),
    prepare: (request, call) =>
      collectPrepare(
        openStream(link, streams.prepare, { in: (version) => prepareIn(version, request), ...call }),
        call?.onPhase,
      ),
    outputs: (request, call) => collectOutputs(openStream(link, streams.outputs, { in: same(request), ...call })),
    watch: (request, watch) =>
      followRun(
        ({ request: from, signal }) =>
          openStream(link, streams.watch, signal ? { in: same(from), signal } : { in: same(from) }),
        request,
        watch,
      ),
  };
}

interface Link extends ConnectOptions {
  readonly agreement: Agreement;
}

interface Call<A extends TSchema> {
  readonly name: string;
  readonly answer: A;
}

interface Sent extends CallOptions {
  /** The request in the version that the agent speaks. */
  readonly in: (version: ContractVersion) => Translated;
}

/** A request that is the same in all versions. */
function same(request: object): Sent["in"] {
  return () => ({ ok: true, request });
}

interface Ready {
  readonly path: string;
  readonly request: object;
}

/** Agrees on a version with the agent, unless that was done before, and puts the request into it. */
async function makeReady(link: Link, name: string, sent: Sent): Promise<Reply<Ready>> {
  const version = await agree(link, sent);
  if (!version.ok) return version;
  const translated = sent.in(version.value);
  if (!translated.ok) return unsupported(translated.message);
  return succeed({ path: pathOf(version.value, name), request: translated.request });
}

async function agree(link: Link, call: CallOptions): Promise<Reply<ContractVersion>> {
  const { agreement } = link;
  if (agreement.version !== undefined) return succeed(agreement.version);
  const info = await askInfo(link, call);
  if (!info.ok) return info;
  const version = agreedVersion(info.value.protocol);
  if (version === undefined) return unsupported(tooOld(info.value.protocol));
  agreement.version = version;
  return succeed(version);
}

async function askInfo(link: Link, call: CallOptions | undefined): Promise<Reply<InfoResult>> {
  return await exchange(link, calls.info, { path: pathOf(infoVersion, calls.info.name), request: {}, ...call });
}

/** In version 1 a run works on whatever is prepared: that has to be the stack of the request. */
async function startRun(link: Link, request: StartRequest, call: CallOptions = {}): Promise<Reply<StartResult>> {
  const version = await agree(link, call);
  if (!version.ok) return version;
  if (version.value === 1 && request.stack !== undefined) {
    const info = await askInfo(link, call);
    if (!info.ok) return info;
    const problem = wrongStack(request.stack, info.value.prepared?.stack);
    if (problem !== undefined && info.value.activeRun !== request.runId) return unsupported(problem);
  }
  return await callAgent(link, calls.start, { in: (agreed) => startIn(agreed, request), ...call });
}

async function callAgent<A extends TSchema>(link: Link, call: Call<A>, sent: Sent): Promise<Reply<Static<A>>> {
  const ready = await makeReady(link, call.name, sent);
  if (!ready.ok) return ready;
  return await exchange(link, call, sent.signal ? { ...ready.value, signal: sent.signal } : ready.value);
}

/** One request, one answer. */
async function exchange<A extends TSchema>(
  link: Link,
  call: Call<A>,
  { path, request, signal }: Ready & CallOptions,
): Promise<Reply<Static<A>>> {
  const deadline = AbortSignal.timeout(link.callTimeoutMs ?? callTimeoutMs);
  try {
    const either = signal ? AbortSignal.any([signal, deadline]) : deadline;
    const response = await post(link, { path, request, signal: either });
    const text = response.body ? await readText(response.body, maxBodyBytes) : "";
    if (text === undefined) return protocolError(`the answer to ${call.name} is larger than ${maxBodyBytes} bytes`);
    if (!response.ok) return { ok: false, error: readError(call.name, response.status, text) };
    const answer = readAnswer(call, text);
    if (!answer.ok) return protocolError(`the answer to ${call.name} does not fit the contract: ${answer.problem}`);
    return succeed(answer.value);
  } catch (error) {
    return { ok: false, error: failure(link, error, { deadline, signal }) };
  }
}

function readAnswer<A extends TSchema>(call: Call<A>, text: string): ReturnType<typeof parseJson<A>> {
  const json = readJson(text);
  if (!json.ok) return json;
  const fitted = fitAnswer(call.name, json.value, vocabulary);
  return checkValue(call.answer, fitted.kind === "known" ? fitted.value : json.value);
}

/** A stream's messages; the last element tells how it ended. */
export type StreamItem<M> =
  | { readonly type: "message"; readonly message: M }
  | { readonly type: "alive" }
  /** A message that this version does not know. */
  | { readonly type: "skipped"; readonly seq?: number }
  | { readonly type: "ended"; readonly error?: CallError };

interface Stream<M extends TSchema> {
  readonly name: string;
  readonly message: M;
}

async function* openStream<M extends TSchema>(
  link: Link,
  stream: Stream<M>,
  sent: Sent,
): AsyncGenerator<StreamItem<Static<M>>> {
  const { name } = stream;
  const { signal } = sent;
  const ready = await makeReady(link, name, sent);
  if (!ready.ok) {
    yield { type: "ended", error: ready.error };
    return;
  }
  const silence = new Silence(link.silenceMs ?? silenceMs);
  try {
    const either = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
    const response = await post(link, { ...ready.value, signal: either });
    if (!response.ok || !response.body) {
      const text = response.body ? await readText(response.body, maxBodyBytes) : undefined;
      yield { type: "ended", error: readError(name, response.status, text ?? "") };
      return;
    }
    for await (const line of readLines(response.body, maxLineBytes)) {
      silence.broken();
      const item = readFrame(stream, line);
      yield item;
      if (item.type === "ended") return;
    }
    yield { type: "ended", error: { code: "unreachable", message: `the stream of ${name} was cut off` } };
  } catch (error) {
    yield { type: "ended", error: failure(link, error, { deadline: silence.signal, signal }) };
  } finally {
    silence.end();
  }
}

function readFrame<M extends TSchema>(stream: Stream<M>, line: string): StreamItem<Static<M>> {
  const frame = parseJson(Frame, line);
  if (!frame.ok) return badLine(stream.name, frame.problem);
  switch (frame.value.frame) {
    case "message": {
      const fitted = fitAnswer(stream.name, frame.value.message, vocabulary);
      if (fitted.kind === "skipped") return { type: "skipped", ...(fitted.seq !== undefined && { seq: fitted.seq }) };
      const message = checkValue(stream.message, fitted.value);
      return message.ok ? { type: "message", message: message.value } : badLine(stream.name, message.problem);
    }
    case "heartbeat":
      return { type: "alive" };
    case "error": {
      const error = checkValue(AgentError, fitError(frame.value.error, vocabulary));
      return error.ok ? { type: "ended", error: error.value } : badLine(stream.name, error.problem);
    }
    case "end":
      return { type: "ended" };
    default:
      return assertNever(frame.value);
  }
}

function badLine(name: string, problem: string): { readonly type: "ended"; readonly error: CallError } {
  return { type: "ended", error: { code: "protocol", message: `a line of ${name} breaks the contract: ${problem}` } };
}

/** Aborts its signal once nothing has been heard for a while: a half-open connection gives no other sign. */
class Silence {
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
    this.broken();
  }

  broken(): void {
    this.end();
    this.#timer = setTimeout(() => this.#controller.abort(new DOMException("silence", "TimeoutError")), this.#ms);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

type Items<M> = AsyncIterable<StreamItem<M>>;

async function collectPrepare(
  items: Items<PrepareMessage>,
  onPhase: PrepareOptions["onPhase"],
): Promise<Reply<PrepareResult>> {
  for await (const item of items) {
    if (item.type === "ended") return { ok: false, error: item.error ?? torn("prepare") };
    if (item.type !== "message") continue;
    if (item.message.type === "done") return succeed(item.message.result);
    onPhase?.(item.message.phase);
  }
  return { ok: false, error: torn("prepare") };
}

async function collectOutputs(items: Items<OutputsMessage>): Promise<Reply<readonly Output[]>> {
  const outputs: Output[] = [];
  let bytes = 0;
  for await (const item of items) {
    if (item.type === "ended") return { ok: false, error: item.error ?? torn("outputs") };
    if (item.type !== "message") continue;
    if (item.message.type === "end") return succeed(outputs);
    outputs.push(item.message.output);
    bytes += JSON.stringify(item.message.output).length;
    if (bytes > maxBodyBytes) return protocolError(`the outputs are larger than ${maxBodyBytes} bytes`);
  }
  return { ok: false, error: torn("outputs") };
}

interface Post extends Ready {
  readonly signal: AbortSignal;
}

async function post(options: ConnectOptions, call: Post): Promise<Response> {
  const { host, port, serverName } = options.address;
  return await postSecurely({
    url: `https://${host.includes(":") ? `[${host}]` : host}:${port}${call.path}`,
    body: JSON.stringify(call.request),
    serverName,
    credentials: options.credentials(),
    signal: call.signal,
  });
}

function readError(method: string, status: number, text: string): CallError {
  const body = parseJson(ErrorBody, text);
  const error = body.ok ? checkValue(AgentError, fitError(body.value.error, vocabulary, status)) : body;
  if (error.ok) return error.value;
  if (status === 413) return { code: "tooLarge", message: `the request ${method} is too large` };
  return { code: "protocol", message: `the agent answered ${method} with status ${status} and no reason` };
}

interface Cause {
  readonly deadline: AbortSignal;
  readonly signal: AbortSignal | undefined;
}

function failure({ onUntrusted }: ConnectOptions, error: unknown, cause: Cause): CallError {
  const explained = transportError(error, cause);
  if (explained.code === "untrusted") onUntrusted?.();
  return explained;
}

function transportError(error: unknown, cause: Cause): CallError {
  if (cause.signal?.aborted) return { code: "aborted", message: "the call was given up" };
  if (cause.deadline.aborted) return { code: "deadline", message: "the agent did not answer in time" };
  if (error instanceof LineTooLong) return { code: "protocol", message: error.message };
  const message = errorMessage(error);
  if (error instanceof WrongServer || isCertificateError(error)) return { code: "untrusted", message };
  return { code: "unreachable", message };
}

/** OpenSSL's names for what is wrong with a peer's certificate. */
const certificateErrors =
  /^(CERT_|ERR_TLS_CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|INVALID_PURPOSE|INVALID_CA|ERR_SSL)/;

function isCertificateError(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && certificateErrors.test(code);
}

function protocolError(message: string): { readonly ok: false; readonly error: CallError } {
  return { ok: false, error: { code: "protocol", message } };
}

function unsupported(message: string): { readonly ok: false; readonly error: CallError } {
  return { ok: false, error: { code: "unsupported", message } };
}

function torn(method: string): CallError {
  return { code: "unreachable", message: `the stream of ${method} ended before its last message` };
}
