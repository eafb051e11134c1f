/** The operator's side: calls one workspace's agent, which it dials by IP and identifies by the name in its certificate. */
import type { Static, TSchema } from "typebox";
import { postSecurely, WrongServer } from "./transport/bun-fetch.ts";
import { readAnswer, readError, readFrame, type Call, type Stream, type StreamItem } from "./answers.ts";
import { calls, methodPath, streams } from "./contract.ts";
import { errorMessage, succeed, type CallError, type Reply } from "./errors.ts";
import type { InfoResult } from "./info.ts";
import { callTimeoutMs, maxBodyBytes, maxLineBytes, maxPlanChars, silenceMs } from "./limits.ts";
import { LineTooLong, readLines, readText } from "./transport/lines.ts";
import type { PrepareMessage, PreparePhase, PrepareResult } from "./prepare.ts";
import type { RecordRequest, RecordResult } from "./record.ts";
import type {
  CancelRequest,
  CancelResult,
  Output,
  OutputsMessage,
  OutputsRequest,
  PlanMessage,
  PlanRequest,
  SealedPlan,
  StartRequest,
  StartResult,
  WatchRequest,
} from "./run.ts";
import type { PrepareRequest } from "./source.ts";
import type { Credentials } from "./tls/tls.ts";
import {
  agreedVersion,
  infoVersion,
  prepareIn,
  startIn,
  tooOld,
  wrongStack,
  type ContractVersion,
  type Translated,
} from "./versions/versions.ts";
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
  /** Called for every request, so that a renewed certificate takes effect immediately. */
  readonly credentials: () => Credentials;
  /** Called when the agent's certificate is rejected: our trust bundle may be outdated. */
  readonly onUntrusted?: () => void;
  readonly callTimeoutMs?: number;
  /** A stream without a frame for this long is considered dead. */
  readonly silenceMs?: number;
  /** Shared between clients of the same agent, so that the version is negotiated once. */
  readonly agreement?: Agreement;
}

/** The version negotiated with one agent process; while it is unset, the next call reads the agent's `info`. */
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
  /** Has no deadline. It is idempotent: after a broken connection, call it again. */
  prepare(request: PrepareRequest, options?: PrepareOptions): Promise<Reply<PrepareResult>>;
  start(request: StartRequest, options?: CallOptions): Promise<Reply<StartResult>>;
  cancel(request: CancelRequest, options?: CallOptions): Promise<Reply<CancelResult>>;
  outputs(request: OutputsRequest, options?: CallOptions): Promise<Reply<readonly Output[]>>;
  /** The plan that a run kept, as `start` accepts it in `applyPlan`. */
  plan(request: PlanRequest, options?: CallOptions): Promise<Reply<SealedPlan>>;
  /** The record of a finished run. An agent that is older than records answers `unknownMethod`. */
  record(request: RecordRequest, options?: CallOptions): Promise<Reply<RecordResult>>;
  /** Yields every event once, across broken connections, then the result. Ends after the result or a final error. */
  watch(request: WatchRequest, options?: WatchOptions): AsyncIterable<WatchUpdate>;
}

export function connectAgent(options: ConnectOptions): AgentClient {
  const link: Link = { ...options, agreement: options.agreement ?? {} };
  return {
    info: (call) => readInfo(link, call),
    start: (request, call) => startRun(link, request, call),
    cancel: (request, call) => callAgent(link, calls.cancel, { requestIn: inEveryVersion(request), ...call }),
    record: (request, call) => callAgent(link, calls.record, { requestIn: inEveryVersion(request), ...call }),
    prepare: (request, call) =>
      collectPrepare(
        openStream(link, streams.prepare, { requestIn: (version) => prepareIn(version, request), ...call }),
        call?.onPhase,
      ),
    outputs: (request, call) =>
      collectOutputs(openStream(link, streams.outputs, { requestIn: inEveryVersion(request), ...call })),
    plan: (request, call) =>
      collectPlan(openStream(link, streams.plan, { requestIn: inEveryVersion(request), ...call })),
    watch: (request, watch) =>
      followRun(
        ({ request: from, signal }) =>
          openStream(link, streams.watch, { requestIn: inEveryVersion(from), ...(signal && { signal }) }),
        request,
        watch,
      ),
  };
}

interface Link extends ConnectOptions {
  readonly agreement: Agreement;
}

interface Outgoing extends CallOptions {
  /** Translates the request to the version that the agent supports. */
  readonly requestIn: (version: ContractVersion) => Translated;
}

/** For a request that is the same in all versions. */
function inEveryVersion(request: object): Outgoing["requestIn"] {
  return () => ({ ok: true, request });
}

interface TranslatedCall {
  readonly path: string;
  readonly request: object;
}

/** Negotiates a version with the agent, unless it is already known, and translates the request to it. */
async function translate(link: Link, name: string, outgoing: Outgoing): Promise<Reply<TranslatedCall>> {
  const version = await negotiateVersion(link, outgoing);
  if (!version.ok) return version;
  const translated = outgoing.requestIn(version.value);
  if (!translated.ok) return unsupported(translated.message);
  return succeed({ path: methodPath(version.value, name), request: translated.request });
}

async function negotiateVersion(link: Link, call: CallOptions): Promise<Reply<ContractVersion>> {
  const { agreement } = link;
  if (agreement.version !== undefined) return succeed(agreement.version);
  const info = await readInfo(link, call);
  if (!info.ok) return info;
  const version = agreedVersion(info.value.protocol);
  if (version === undefined) return unsupported(tooOld(info.value.protocol));
  agreement.version = version;
  return succeed(version);
}

async function readInfo(link: Link, call: CallOptions | undefined): Promise<Reply<InfoResult>> {
  return await exchange(link, calls.info, { path: methodPath(infoVersion, calls.info.name), request: {}, ...call });
}

/** In version 1 a run uses the prepared stack, so the prepared stack must be the one in the request. */
async function startRun(link: Link, request: StartRequest, call: CallOptions = {}): Promise<Reply<StartResult>> {
  const version = await negotiateVersion(link, call);
  if (!version.ok) return version;
  if (version.value === 1 && request.stack !== undefined) {
    const info = await readInfo(link, call);
    if (!info.ok) return info;
    const problem = wrongStack(request.stack, info.value.prepared?.stack);
    if (problem !== undefined && info.value.activeRun !== request.runId) return unsupported(problem);
  }
  return await callAgent(link, calls.start, { requestIn: (negotiated) => startIn(negotiated, request), ...call });
}

async function callAgent<A extends TSchema>(link: Link, call: Call<A>, outgoing: Outgoing): Promise<Reply<Static<A>>> {
  const translated = await translate(link, call.name, outgoing);
  if (!translated.ok) return translated;
  return await exchange(link, call, { ...translated.value, ...(outgoing.signal && { signal: outgoing.signal }) });
}

/** Sends one request and reads its response. */
async function exchange<A extends TSchema>(
  link: Link,
  call: Call<A>,
  { path, request, signal }: TranslatedCall & CallOptions,
): Promise<Reply<Static<A>>> {
  const deadline = AbortSignal.timeout(link.callTimeoutMs ?? callTimeoutMs);
  try {
    const either = signal ? AbortSignal.any([signal, deadline]) : deadline;
    const response = await post(link, { path, request, signal: either });
    const text = response.body ? await readText(response.body, maxBodyBytes) : "";
    if (text === undefined) return protocolError(`the response to ${call.name} is larger than ${maxBodyBytes} bytes`);
    if (!response.ok) return { ok: false, error: readError(call.name, response.status, text) };
    const answer = readAnswer(call, text);
    if (!answer.ok) return protocolError(`the response to ${call.name} violates the contract: ${answer.problem}`);
    return succeed(answer.value);
  } catch (error) {
    return { ok: false, error: failure(link, error, { deadline, signal }) };
  }
}

async function* openStream<M extends TSchema>(
  link: Link,
  stream: Stream<M>,
  outgoing: Outgoing,
): AsyncGenerator<StreamItem<Static<M>>> {
  const { name } = stream;
  const { signal } = outgoing;
  const translated = await translate(link, name, outgoing);
  if (!translated.ok) {
    yield { type: "ended", error: translated.error };
    return;
  }
  const silence = new SilenceTimer(link.silenceMs ?? silenceMs);
  try {
    const either = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
    const response = await post(link, { ...translated.value, signal: either });
    if (!response.ok || !response.body) {
      const text = response.body ? await readText(response.body, maxBodyBytes) : undefined;
      yield { type: "ended", error: readError(name, response.status, text ?? "") };
      return;
    }
    for await (const line of readLines(response.body, maxLineBytes)) {
      silence.restart();
      const item = readFrame(stream, line);
      yield item;
      if (item.type === "ended") return;
    }
    yield { type: "ended", error: { code: "unreachable", message: `the connection broke during ${name}` } };
  } catch (error) {
    yield { type: "ended", error: failure(link, error, { deadline: silence.signal, signal }) };
  } finally {
    silence.stop();
  }
}

/** Aborts its signal unless it is restarted in time: a half-open connection gives no other sign. */
class SilenceTimer {
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
    this.restart();
  }

  restart(): void {
    this.stop();
    this.#timer = setTimeout(() => this.#controller.abort(new DOMException("silence", "TimeoutError")), this.#ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

type Items<M> = AsyncIterable<StreamItem<M>>;

async function collectPrepare(
  items: Items<PrepareMessage>,
  onPhase: PrepareOptions["onPhase"],
): Promise<Reply<PrepareResult>> {
  for await (const item of items) {
    if (item.type === "ended") return { ok: false, error: item.error ?? incompleteStream("prepare") };
    if (item.type !== "message") continue;
    if (item.message.type === "done") return succeed(item.message.result);
    onPhase?.(item.message.phase);
  }
  return { ok: false, error: incompleteStream("prepare") };
}

async function collectOutputs(items: Items<OutputsMessage>): Promise<Reply<readonly Output[]>> {
  const outputs: Output[] = [];
  let bytes = 0;
  for await (const item of items) {
    if (item.type === "ended") return { ok: false, error: item.error ?? incompleteStream("outputs") };
    if (item.type !== "message") continue;
    if (item.message.type === "end") return succeed(outputs);
    outputs.push(item.message.output);
    bytes += JSON.stringify(item.message.output).length;
    if (bytes > maxBodyBytes) return protocolError(`the outputs are larger than ${maxBodyBytes} bytes`);
  }
  return { ok: false, error: incompleteStream("outputs") };
}

async function collectPlan(items: Items<PlanMessage>): Promise<Reply<SealedPlan>> {
  const parts: string[] = [];
  let chars = 0;
  for await (const item of items) {
    if (item.type === "ended") return { ok: false, error: item.error ?? incompleteStream("plan") };
    if (item.type !== "message") continue;
    if (item.message.type === "end") return succeed({ digest: item.message.digest, content: parts.join("") });
    parts.push(item.message.content);
    chars += item.message.content.length;
    if (chars > maxPlanChars) return protocolError(`the plan is larger than ${maxPlanChars} characters`);
  }
  return { ok: false, error: incompleteStream("plan") };
}

interface Post extends TranslatedCall {
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
  if (cause.signal?.aborted) return { code: "aborted", message: "the operator aborted the call" };
  if (cause.deadline.aborted) return { code: "deadline", message: "the agent did not respond in time" };
  if (error instanceof LineTooLong) return { code: "protocol", message: error.message };
  const message = errorMessage(error);
  if (error instanceof WrongServer || isCertificateError(error)) return { code: "untrusted", message };
  return { code: "unreachable", message };
}

/** OpenSSL's error codes for a peer's certificate. */
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

function incompleteStream(method: string): CallError {
  return { code: "unreachable", message: `the response to ${method} ended before its last message` };
}
