/** The outcome of a step of `prepare`: a value, or a failure that a user can act on. */
import type { PrepareReason } from "@pko/rpc";
import { bounded, type Clean } from "./system/clean-text.ts";
import type { Redactor } from "./system/redact.ts";

export interface Failure {
  readonly reason: PrepareReason;
  /** May quote output with secrets: use `cleanFailure` before it leaves the agent. */
  readonly message: string;
  /** The last lines that the failed tool printed. */
  readonly lines: readonly Clean[];
}

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: Failure };

export function done<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function failed(
  reason: PrepareReason,
  message: string,
  lines: readonly Clean[] = [],
): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure: { reason, message, lines } };
}

interface CleanFailure {
  readonly reason: PrepareReason;
  readonly message: Clean;
  readonly lines: Clean[];
}

/** Masks secrets and limits the length, so that the failure may leave the agent. */
export function cleanFailure({ reason, message, lines }: Failure, redactor: Redactor): CleanFailure {
  return { reason, message: bounded(redactor.clean(message)), lines: lines.map(bounded) };
}
