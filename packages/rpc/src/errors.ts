/** Why a call failed, as data: what the agent answered, or what kept its answer from arriving. */
import { Type, type Static } from "typebox";
import { maxMessageChars } from "./limits.ts";
import { RunId } from "./run.ts";

export const AgentErrorCode = Type.Union([
  Type.Literal("invalidRequest"),
  Type.Literal("unknownMethod"),
  /** No such run. After a pod was replaced, this is how its runs look. */
  Type.Literal("notFound"),
  /** A run is active; there is one at a time. */
  Type.Literal("busy"),
  /** Nothing was prepared, or what was prepared is gone. */
  Type.Literal("unprepared"),
  /** The run exists with another operation. */
  Type.Literal("runMismatch"),
  Type.Literal("tooLarge"),
  Type.Literal("stopping"),
  /** The command that was to give the answer failed. */
  Type.Literal("failed"),
  Type.Literal("internal"),
]);
export type AgentErrorCode = Static<typeof AgentErrorCode>;

export const AgentError = Type.Object({
  code: AgentErrorCode,
  message: Type.String({ maxLength: maxMessageChars }),
  activeRun: Type.Optional(RunId),
});
export type AgentError = Static<typeof AgentError>;

/** What the caller's side found: the agent did not say it. */
type TransportErrorCode =
  | "unreachable"
  // Its certificate is not the workspace's, or not of our authority.
  | "untrusted"
  | "deadline"
  | "aborted"
  // It answered what the contract does not allow.
  | "protocol"
  // Its version of the contract has no such request: it was not sent.
  | "unsupported";

export interface CallError {
  readonly code: AgentErrorCode | TransportErrorCode;
  readonly message: string;
  readonly activeRun?: RunId;
}

export type Reply<T, E = CallError> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

export function succeed<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function fail(code: AgentErrorCode, message: string): { readonly ok: false; readonly error: AgentError } {
  return { ok: false, error: { code, message } };
}

/** The HTTP status of an answer, for proxies and people; the body's code is what callers act on. */
export function statusOf(code: AgentErrorCode): number {
  switch (code) {
    case "invalidRequest":
      return 400;
    case "unknownMethod":
    case "notFound":
      return 404;
    case "busy":
    case "unprepared":
    case "runMismatch":
      return 409;
    case "tooLarge":
      return 413;
    case "stopping":
      return 503;
    case "failed":
      return 502;
    case "internal":
      return 500;
    default:
      return assertNever(code);
  }
}

/** The end of an exhaustive switch: the compiler proves it is not reached. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
