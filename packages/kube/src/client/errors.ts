/** The ways in which a call can fail: the API server said no, or there was no answer. */

export interface StatusCause {
  readonly field?: string;
  readonly reason?: string;
  readonly message?: string;
}

/** What the API server tells of a failure: its `Status`, with the gaps filled. */
export interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** The API server answered, and the answer is not success. */
export class ApiError extends Error {
  readonly status: number;
  readonly reason: string;
  /** One for each field that an invalid object got wrong. */
  readonly causes: readonly StatusCause[];
  /** The API server's own words: `message` says besides which call it was. */
  readonly explanation: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(call: string, refusal: Refusal) {
    super(`${call}: ${refusal.status} ${refusal.reason}: ${refusal.message}`);
    this.name = "ApiError";
    this.status = refusal.status;
    this.reason = refusal.reason;
    this.causes = refusal.causes ?? [];
    this.explanation = refusal.message;
    this.retryAfterSeconds = refusal.retryAfterSeconds;
  }
}

/** No complete answer came: refused, cut, or too late. */
export class ConnectionError extends Error {
  /** What the system called it, such as ECONNREFUSED, or DEADLINE for an answer that took too long. */
  readonly code: string;

  constructor(call: string, failure: { readonly code: string; readonly cause?: unknown }) {
    super(`${call}: no answer (${failure.code})`, { cause: failure.cause });
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
/** The object changed meanwhile, or a precondition does not hold. */
export const isConflict: Test = (error): error is ApiError => is409(error) && error.reason !== "AlreadyExists";
export const isAlreadyExists: Test = (error): error is ApiError => is409(error) && error.reason === "AlreadyExists";
/** The object breaks its schema; `causes` tells where. */
export const isInvalid: Test = hasStatus(422);
/** The server could not make sense of the request. */
export const isBadRequest: Test = hasStatus(400);
export const isForbidden: Test = hasStatus(403);
/** Nothing new is taken into a namespace that is being deleted. Whoever answers for the API server may keep the cause back. */
export const isNamespaceTerminating: Test = (error): error is ApiError =>
  isForbidden(error) &&
  (error.causes.some(({ reason }) => reason === "NamespaceTerminating") ||
    error.explanation.includes("because it is being terminated"));
export const isUnauthorized: Test = hasStatus(401);
export const isTooManyRequests: Test = hasStatus(429);
/** The resource version is no longer (or not yet) to be had: list again. */
export const isExpired: Test = hasStatus(410);

/** Whether the same call may well succeed later, with nothing changed on our side. */
export function isTransient(error: unknown): error is ApiError | ConnectionError {
  return (
    error instanceof ConnectionError || (error instanceof ApiError && (error.status === 429 || error.status >= 500))
  );
}
