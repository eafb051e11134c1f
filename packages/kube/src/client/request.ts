/** One call to the API server: identity, deadline, retries, and errors that say what happened. */
import { applyBody, applyType } from "./apply-body.ts";
import type { CallOptions } from "./client.ts";
import { sleep, type Clock } from "../clock.ts";
import type { Credentials } from "./credentials.ts";
import { asError, DeadlineError, orAborted, startDeadline, withDeadline, type Deadline } from "./deadline.ts";
import { ConnectionError, isUnauthorized, type ApiError } from "./errors.ts";
import type { HttpRequest, Transport } from "./http.ts";
import { queryString, type Query } from "./paths.ts";
import { retryDelay, type RetryPolicy } from "./retry.ts";
import { apiErrorOf } from "./status.ts";

export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Query;
  readonly body?: object;
  readonly contentType?: string;
  readonly accept?: string;
  /** Whether doing it twice is the same as doing it once. */
  readonly repeatable: boolean;
  readonly options?: CallOptions | undefined;
}

/** How one attempt of a call ended. */
export interface ApiResponse {
  /** Method and path. */
  readonly call: string;
  readonly method: string;
  /** The status code; `<error>`, as in client-go, where no response came. */
  readonly code: number | "<error>";
  /** Of a response that is not success. */
  readonly error?: ApiError;
}

export interface RequestSettings {
  readonly credentials: Credentials;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly userAgent: string;
  /** For a call with all its attempts. */
  readonly timeoutMs: number;
  /** For one attempt, so that a dead connection leaves time for a second one. */
  readonly attemptTimeoutMs: number;
  readonly retry: RetryPolicy;
  readonly onResponse: (response: ApiResponse) => void;
}

/** A streamed answer. Whoever opens it closes it. */
export interface OpenStream {
  readonly body: ReadableStream<Uint8Array>;
  /** Ends the connection; needed also after the last byte. Who still reads gets the reason. */
  close(reason?: Error): void;
}

/** The whole body of a successful answer. */
export async function send(settings: RequestSettings, call: Call): Promise<string> {
  return (await sendDated(settings, call)).text;
}

interface DatedAnswer {
  readonly text: string;
  /** When the server answered, by its own clock: the header as it came. */
  readonly date?: string;
}

export async function sendDated(settings: RequestSettings, call: Call): Promise<DatedAnswer> {
  return await withRetries(settings, call, async (attempt) => {
    const limits = { clock: settings.clock, ms: attempt.timeoutMs, signal: call.options?.signal };
    return await withDeadline(limits, async (signal) => {
      const response = await exchange(settings, call, { ...attempt, signal });
      const date = response.headers.get("date");
      return { text: await response.text(), ...(date !== null && { date }) };
    });
  });
}

/** A successful answer as a stream; the deadline is for its beginning. */
export async function open(settings: RequestSettings, call: Call): Promise<OpenStream> {
  return await withRetries(settings, call, async (attempt) => {
    const deadline = startDeadline({ clock: settings.clock, ms: attempt.timeoutMs, signal: call.options?.signal });
    try {
      const { signal } = deadline;
      const response = await orAborted(exchange(settings, call, { ...attempt, signal }), signal);
      deadline.stopClock();
      return openStream(response, deadline);
    } catch (error) {
      deadline.release();
      throw error;
    }
  });
}

function openStream(response: Response, deadline: Deadline): OpenStream {
  return {
    body: response.body ?? new ReadableStream({ start: (controller) => controller.close() }),
    close(reason = new Error("closed")) {
      deadline.abort(reason);
      deadline.release();
    },
  };
}

export function describe(call: Pick<Call, "method" | "path">): string {
  return `${call.method} ${call.path}`;
}

interface Attempt {
  readonly timeoutMs: number;
  /** The server refused the last credentials. */
  readonly refresh: boolean;
  readonly freshConnection: boolean;
}

async function withRetries<T>(
  settings: RequestSettings,
  call: Call,
  run: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  const { clock } = settings;
  const { signal, timeoutMs: allowedMs = settings.timeoutMs, freshConnection: asked = false } = call.options ?? {};
  const endsAt = clock.monotonic() + allowedMs;
  let wasRefused = false;
  let refresh = false;
  for (let count = 1; ; count++) {
    const timeoutMs = Math.min(settings.attemptTimeoutMs, endsAt - clock.monotonic());
    // The server may just be closing a pooled connection: what is sent once only does not take the risk.
    const freshConnection = count > 1 || !call.repeatable || asked;
    try {
      return await run({ timeoutMs, refresh, freshConnection });
    } catch (cause) {
      const error = explain(call, cause);
      refresh = isUnauthorized(error) && !wasRefused;
      wasRefused ||= refresh;
      const delay = refresh ? 0 : retryDelay({ error, attempt: count, repeatable: call.repeatable }, settings.retry);
      if (delay === undefined || clock.monotonic() + delay >= endsAt) throw error;
      await sleep(clock, delay, signal);
      signal?.throwIfAborted();
    }
  }
}

/** The caller's own abort, and what is ours already, pass as they are. */
export function explain(call: Call, error: unknown): Error {
  if (error instanceof DeadlineError) return new ConnectionError(describe(call), { code: "DEADLINE", cause: error });
  if (call.options?.signal?.aborted) return asError(call.options.signal.reason);
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "string") return new ConnectionError(describe(call), { code, cause: error });
  return asError(error);
}

async function exchange(
  settings: RequestSettings,
  call: Call,
  attempt: Attempt & { readonly signal: AbortSignal },
): Promise<Response> {
  const { credentials } = settings;
  const access = await credentials.access(attempt.refresh);
  const request: HttpRequest = {
    method: call.method,
    url: `${credentials.server}${call.path}${queryString(call.query ?? {})}`,
    headers: {
      accept: call.accept ?? "application/json",
      "user-agent": settings.userAgent,
      ...(access.token !== undefined && { authorization: `Bearer ${access.token}` }),
      ...(call.body && { "content-type": call.contentType ?? "application/json" }),
    },
    ...(call.body && { body: encode(call.body, call.contentType) }),
    tls: access.tls,
    ...(credentials.proxy !== undefined && { proxy: credentials.proxy }),
    signal: attempt.signal,
    freshConnection: attempt.freshConnection,
  };
  return await answered(settings, request, describe(call));
}

async function answered(settings: RequestSettings, request: HttpRequest, call: string): Promise<Response> {
  const { transport, onResponse } = settings;
  const { method } = request;
  let response: Response;
  try {
    response = await transport(request);
  } catch (error) {
    onResponse({ call, method, code: "<error>" });
    throw error;
  }
  const { status: code, ok } = response;
  const error = ok ? undefined : await apiErrorOf(call, response);
  onResponse({ call, method, code, ...(error && { error }) });
  if (error) throw error;
  return response;
}

function encode(body: object, contentType: string | undefined): string {
  return contentType === applyType ? applyBody(body) : JSON.stringify(body);
}
