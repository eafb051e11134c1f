/** How a step of `Prepare` ends: with its value, or with a failure that a user can act on. */
import type { PrepareReason } from "@pko/rpc";

export interface Failure {
  readonly reason: PrepareReason;
  readonly message: string;
  /** The last lines of the tool that failed. */
  readonly lines: readonly string[];
}

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: Failure };

export function done<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function failed(
  reason: PrepareReason,
  message: string,
  lines: readonly string[] = [],
): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure: { reason, message, lines } };
}
