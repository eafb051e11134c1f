/** How a call can fail: with an unsuccessful response, or without a response. */

export interface StatusCause {
  readonly field?: string;
  readonly reason?: string;
  readonly message?: string;
}

/** The `Status` object of an unsuccessful response, with defaults for what it lacks. */
export interface Failure {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** The API server sent an unsuccessful response. */
export class ApiError extends Error {
  readonly status: number;
  readonly reason: string;
  /** One for each invalid field of an object. */
  readonly causes: readonly StatusCause[];
  /** The API server's message, without the call that `message` adds. */
  readonly explanation: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(call: string, failure: Failure) {
    super(`${call}: ${failure.status} ${failure.reason}: ${failure.message}`);
    this.name = "ApiError";
    this.status = failure.status;
    this.reason = failure.reason;
    this.causes = failure.causes ?? [];
    this.explanation = failure.message;
    this.retryAfterSeconds = failure.retryAfterSeconds;
  }
}

/** No complete response arrived: the connection was refused or broke, or the response was too late. */
export class ConnectionError extends Error {
  /** The system's error code, for example ECONNREFUSED, or DEADLINE for a response that took too long. */
  readonly code: string;

  constructor(call: string, failure: { readonly code: string; readonly cause?: unknown }) {
    super(`${call}: no response (${failure.code})`, { cause: failure.cause });
    this.name = "ConnectionError";
    this.code = failure.code;
  }
}

type Test = (error: unknown) => error is ApiError;

function hasStatus(status: number): Test {
  return (error): error is ApiError => error instanceof ApiError && error.status === status;
}

const is409 = hasStatus(409);

export const isNotFound: Test = hasStatus(404);
/** The object has changed, or a precondition does not hold. */
export const isConflict: Test = (error): error is ApiError => is409(error) && error.reason !== "AlreadyExists";
export const isAlreadyExists: Test = (error): error is ApiError => is409(error) && error.reason === "AlreadyExists";
/** The object violates its schema; `causes` has the fields. */
export const isInvalid: Test = hasStatus(422);
/** The server could not parse the request. */
export const isBadRequest: Test = hasStatus(400);
export const isForbidden: Test = hasStatus(403);
/** Nothing can be created in a namespace that is being deleted. A proxy may drop the cause, so the message counts too. */
export const isNamespaceTerminating: Test = (error): error is ApiError =>
  isForbidden(error) &&
  (error.causes.some(({ reason }) => reason === "NamespaceTerminating") ||
    error.explanation.includes("because it is being terminated"));
export const isUnauthorized: Test = hasStatus(401);
export const isTooManyRequests: Test = hasStatus(429);
/** The resource version is too old (or too new): a new list is needed. */
export const isExpired: Test = hasStatus(410);

/** Whether the same call may succeed later without a change on our side. */
export function isTransient(error: unknown): error is ApiError | ConnectionError {
  return (
    error instanceof ConnectionError || (error instanceof ApiError && (error.status === 429 || error.status >= 500))
  );
}
