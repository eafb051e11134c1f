/** Why a call failed, as data: an error from the agent, or an error in transport. */
import { Type, type Static } from "typebox";
import { maxMessageChars } from "@pko/records";
import { RunId } from "./run.ts";

export const AgentErrorCode = Type.Union([
  Type.Literal("invalidRequest"),
  Type.Literal("unknownMethod"),
  /** The agent does not know the run, for example because the pod was replaced. */
  Type.Literal("notFound"),
  /** Another run is active; an agent runs one at a time. */
  Type.Literal("busy"),
  /** Nothing is prepared, or the prepared files were deleted. */
  Type.Literal("unprepared"),
  /** The run exists with another operation. */
  Type.Literal("runMismatch"),
  Type.Literal("tooLarge"),
  Type.Literal("stopping"),
  /** The command that the agent ran for this call failed. */
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

/** Errors that the client detects itself. */
type TransportErrorCode =
  | "unreachable"
  // The certificate is for another workspace or from another CA.
  | "untrusted"
  | "deadline"
  | "aborted"
  // The response violates the protocol.
  | "protocol"
  // The agent's version of the protocol has no such request, so it was not sent.
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

/** The HTTP status, for proxies and people; callers act on the code in the body. */
export function httpStatus(code: AgentErrorCode): number {
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
  }
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
