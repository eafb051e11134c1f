/** Whether a failed call is retried, and after how long. */
import { ApiError, ConnectionError } from "../errors.ts";

interface Failure {
  readonly error: unknown;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** Whether the call is idempotent. */
  readonly repeatable: boolean;
}

export interface RetryPolicy {
  readonly attempts: number;
  readonly baseMs: number;
  readonly maxMs: number;
  /** Between 0 and 1. */
  readonly random: () => number;
}

/** The connection was never established, so the server cannot have seen the request. */
const neverSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);
/** A certificate that is not trusted now will not be trusted in a second. */
const certificateProblem = /CERT|TLS|UNABLE_TO/;

/** Milliseconds to wait before the next attempt, or undefined to give up. */
export function retryDelay(failure: Failure, policy: RetryPolicy): number | undefined {
  if (failure.attempt >= policy.attempts || !isWorthRetrying(failure)) return undefined;
  const retryAfter = failure.error instanceof ApiError ? failure.error.retryAfterSeconds : undefined;
  // Never sooner than the server requests, and with jitter, so that clients do not return in step.
  if (retryAfter !== undefined) return retryAfter * 1000 + policy.random() * Math.max(retryAfter * 500, policy.baseMs);
  return backoff(failure.attempt, policy);
}

/** Exponential, with a random delay between half and all of the step. */
export function backoff(attempt: number, policy: Pick<RetryPolicy, "baseMs" | "maxMs" | "random">): number {
  const step = Math.min(policy.baseMs * 2 ** (attempt - 1), policy.maxMs);
  return step * (0.5 + policy.random() / 2);
}

function isWorthRetrying({ error, repeatable }: Failure): boolean {
  if (error instanceof ApiError) return wasNotProcessed(error) || (repeatable && isServerError(error));
  if (error instanceof ConnectionError) {
    return neverSent.has(error.code) || (repeatable && !certificateProblem.test(error.code));
  }
  return false;
}

/** The server rejected the request before processing it and sent a Retry-After. */
function wasNotProcessed(error: ApiError): boolean {
  return (error.status === 429 || error.status === 503) && error.retryAfterSeconds !== undefined;
}

function isServerError(error: ApiError): boolean {
  return error.status === 429 || error.status >= 500;
}
