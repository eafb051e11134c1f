/** One call to the API server: authentication, deadline, retries and errors. */
import { applyBody, applyType } from "../apply-body.ts";
import type { CallOptions } from "../client.ts";
import { sleep, type Clock } from "../../clock.ts";
import type { Credentials } from "../connection/credentials.ts";
import { asError, DeadlineError, orAborted, startDeadline, withDeadline, type Deadline } from "./deadline.ts";
import { ConnectionError, isUnauthorized, type ApiError } from "../errors.ts";
import type { HttpRequest, Transport } from "./http.ts";
import { queryString, type Query } from "./paths.ts";
import { retryDelay, type RetryPolicy } from "./retry.ts";
import { parseApiError } from "./status.ts";

export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Query;
  readonly body?: object;
  readonly contentType?: string;
  readonly accept?: string;
  /** Whether the call is idempotent. */
  readonly repeatable: boolean;
  /** Whether admission should deny it. */
  readonly isDenialExpected?: boolean | undefined;
  readonly options?: CallOptions | undefined;
}

/** How one attempt of a call ended. */
export interface ApiResponse {
  /** Method and path. */
  readonly call: string;
  readonly method: string;
  /** The status code, or `<error>`, as in client-go, if there was no response. */
  readonly code: number | "<error>";
  /** Of an unsuccessful response. */
  readonly error?: ApiError;
  /** Whether admission should deny the call. */
  readonly isDenialExpected?: boolean;
}

export interface RequestSettings {
  readonly credentials: Credentials;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly userAgent: string;
  /** For a call including all its attempts. */
  readonly timeoutMs: number;
  /** For one attempt, so that a dead connection leaves time for a second one. */
  readonly attemptTimeoutMs: number;
  readonly retry: RetryPolicy;
  readonly onResponse: (response: ApiResponse) => void;
}

/** A streamed response. The caller closes it. */
interface OpenStream {
  readonly body: ReadableStream<Uint8Array>;
  /** Ends the connection; required even after the last byte. */
  close(): void;
}

/** The whole body of a successful response. */
export async function send(settings: RequestSettings, call: Call): Promise<string> {
  return (await sendDated(settings, call)).text;
}

interface DatedResponse {
  readonly text: string;
  /** The `Date` header: the server's clock when it responded. */
  readonly date?: string;
}

export async function sendDated(settings: RequestSettings, call: Call): Promise<DatedResponse> {
  return await withRetries(settings, call, async (attempt) => {
    const limits = { clock: settings.clock, ms: attempt.timeoutMs, signal: call.options?.signal };
    return await withDeadline(limits, async (signal) => {
      const response = await sendOnce(settings, call, { ...attempt, signal });
      const date = response.headers.get("date");
      return { text: await response.text(), ...(date !== null && { date }) };
    });
  });
}

/** A successful response as a stream; the deadline applies until the response starts. */
export async function open(settings: RequestSettings, call: Call): Promise<OpenStream> {
  return await withRetries(settings, call, async (attempt) => {
    const deadline = startDeadline({ clock: settings.clock, ms: attempt.timeoutMs, signal: call.options?.signal });
    try {
      const { signal } = deadline;
      const response = await orAborted(sendOnce(settings, call, { ...attempt, signal }), signal);
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
    close() {
      deadline.abort(new Error("closed"));
      deadline.release();
    },
  };
}

export function describe(call: Pick<Call, "method" | "path">): string {
  return `${call.method} ${call.path}`;
}

interface Attempt {
  readonly timeoutMs: number;
  /** The server rejected the last credentials. */
  readonly refresh: boolean;
  readonly freshConnection: boolean;
}

async function withRetries<T>(
  settings: RequestSettings,
  call: Call,
  run: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  const { clock } = settings;
  const {
    signal,
    timeoutMs: allowedMs = settings.timeoutMs,
    freshConnection: isRequested = false,
  } = call.options ?? {};
  const endsAt = clock.monotonic() + allowedMs;
  let hasRefreshed = false;
  let refresh = false;
  for (let count = 1; ; count++) {
    const timeoutMs = Math.min(settings.attemptTimeoutMs, endsAt - clock.monotonic());
    // The server may be closing a pooled connection: a call that must not be repeated does not take that risk.
    const freshConnection = count > 1 || !call.repeatable || isRequested;
    try {
      return await run({ timeoutMs, refresh, freshConnection });
    } catch (cause) {
      const error = explain(call, cause);
      refresh = isUnauthorized(error) && !hasRefreshed;
      hasRefreshed ||= refresh;
      const delay = refresh ? 0 : retryDelay({ error, attempt: count, repeatable: call.repeatable }, settings.retry);
      if (delay === undefined || clock.monotonic() + delay >= endsAt) throw error;
      await sleep(clock, delay, signal);
      signal?.throwIfAborted();
    }
  }
}

/** Turns deadlines and system errors into ConnectionErrors. The caller's abort reason and other errors stay unchanged. */
export function explain(call: Call, error: unknown): Error {
  if (error instanceof DeadlineError) return new ConnectionError(describe(call), { code: "DEADLINE", cause: error });
  if (call.options?.signal?.aborted) return asError(call.options.signal.reason);
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "string") return new ConnectionError(describe(call), { code, cause: error });
  return asError(error);
}

async function sendOnce(
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
  return await reportedResponse(settings, request, call);
}

async function reportedResponse(settings: RequestSettings, request: HttpRequest, sent: Call): Promise<Response> {
  const { transport, onResponse } = settings;
  const { method, isDenialExpected = false } = sent;
  const call = describe(sent);
  let response: Response;
  try {
    response = await transport(request);
  } catch (error) {
    onResponse({ call, method, code: "<error>" });
    throw error;
  }
  const { status: code, ok } = response;
  const error = ok ? undefined : await parseApiError(call, response);
  onResponse({ call, method, code, ...(error && { error, isDenialExpected }) });
  if (error) throw error;
  return response;
}

function encode(body: object, contentType: string | undefined): string {
  return contentType === applyType ? applyBody(body) : JSON.stringify(body);
}
