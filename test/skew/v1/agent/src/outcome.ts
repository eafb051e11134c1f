/** How a step of `Prepare` ends: with its value, or with a failure that a user can act on. */
import type { PrepareReason } from "../../rpc/src/index.ts";
import { bounded, type Clean } from "./system/clean-text.ts";
import type { Redactor } from "./system/redact.ts";

export interface Failure {
  readonly reason: PrepareReason;
  /** May quote what others said: to be shown as `shown` makes it. */
  readonly message: string;
  /** The last lines of the tool that failed. */
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

interface ShownFailure {
  readonly reason: PrepareReason;
  readonly message: Clean;
  readonly lines: Clean[];
}

/** As it may leave the agent. */
export function shown({ reason, message, lines }: Failure, redactor: Redactor): ShownFailure {
  return { reason, message: bounded(redactor.clean(message)), lines: lines.map(bounded) };
}
