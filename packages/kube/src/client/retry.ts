/** When a failed call is worth another try, and after how long. */
import { ApiError, ConnectionError } from "./errors.ts";

interface Failure {
  readonly error: unknown;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Whether the call done twice is the same as done once. */
  readonly repeatable: boolean;
}

export interface RetryPolicy {
  readonly attempts: number;
  readonly baseMs: number;
  readonly maxMs: number;
  /** Between 0 and 1. */
  readonly random: () => number;
}

/** The connection was never made, so the server cannot have seen the request. */
const neverSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);
/** A certificate that does not convince us will not do so in a second. */
const distrusted = /CERT|TLS|UNABLE_TO/;

/** Milliseconds to wait before the next try; undefined: give up. */
export function retryDelay(failure: Failure, policy: RetryPolicy): number | undefined {
  if (failure.attempt >= policy.attempts || !isWorthRetrying(failure)) return undefined;
  const asked = failure.error instanceof ApiError ? failure.error.retryAfterSeconds : undefined;
  // Never sooner than asked, and not all clients in the same instant.
  if (asked !== undefined) return asked * 1000 + policy.random() * Math.max(asked * 500, policy.baseMs);
  return backoff(failure.attempt, policy);
}

/** Exponential, between half and all of the step. */
export function backoff(attempt: number, policy: Pick<RetryPolicy, "baseMs" | "maxMs" | "random">): number {
  const step = Math.min(policy.baseMs * 2 ** (attempt - 1), policy.maxMs);
  return step * (0.5 + policy.random() / 2);
}

function isWorthRetrying({ error, repeatable }: Failure): boolean {
  if (error instanceof ApiError) return wasNotProcessed(error) || (repeatable && isServerTrouble(error));
  if (error instanceof ConnectionError) {
    return neverSent.has(error.code) || (repeatable && !distrusted.test(error.code));
  }
  return false;
}

/** The server turned the request away at the door and says when to come back. */
function wasNotProcessed(error: ApiError): boolean {
  return (error.status === 429 || error.status === 503) && error.retryAfterSeconds !== undefined;
}

function isServerTrouble(error: ApiError): boolean {
  return error.status === 429 || error.status >= 500;
}
