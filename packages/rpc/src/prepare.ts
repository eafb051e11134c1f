/** The messages of `prepare`: its phases as they start, then the result. */
import { Type, type Static } from "typebox";
import { maxMessageChars } from "@pko/records";

const message = Type.String({ maxLength: maxMessageChars });

export const PreparePhase = Type.Union([
  Type.Literal("source"),
  Type.Literal("install"),
  Type.Literal("stack"),
  Type.Literal("config"),
]);
export type PreparePhase = Static<typeof PreparePhase>;

export const PrepareReason = Type.Union([
  // The request can never succeed: the spec must change.
  Type.Literal("sourceInvalid"),
  Type.Literal("sourceUnauthorized"),
  Type.Literal("sourceNotFound"),
  // The network or the server is down: the same request may succeed later.
  Type.Literal("sourceUnavailable"),
  // The fetched content is not acceptable: wrong digest, too large, or links that leave its folder.
  Type.Literal("sourceRefused"),
  Type.Literal("projectInvalid"),
  Type.Literal("installFailed"),
  Type.Literal("stackNotFound"),
  Type.Literal("invalidToken"),
  // Pulumi Cloud does not respond: the same request may succeed later.
  Type.Literal("backendUnavailable"),
  Type.Literal("configInvalid"),
  Type.Literal("versionTooLow"),
  Type.Literal("toolMissing"),
  // A newer request replaced this one.
  Type.Literal("superseded"),
  Type.Literal("other"),
]);
export type PrepareReason = Static<typeof PrepareReason>;

export const PrepareFailure = Type.Object({
  phase: PreparePhase,
  reason: PrepareReason,
  message,
  /** The last lines that the failed tool printed. */
  lines: Type.Array(message, { maxItems: 256 }),
});
export type PrepareFailure = Static<typeof PrepareFailure>;

export const ProjectInfo = Type.Object({
  name: Type.String({ maxLength: 512 }),
  runtime: Type.String({ maxLength: 256 }),
});
export type ProjectInfo = Static<typeof ProjectInfo>;

export const Prepared = Type.Object({
  /** The commit, the artifact's digest or the Program's revision. */
  revision: Type.String({ maxLength: 512 }),
  stack: Type.String({ maxLength: 512 }),
  project: ProjectInfo,
  pulumiVersion: Type.String({ maxLength: 128 }),
  /** Identifies the executable of the CLI. Absent if that does not determine the version: it may be a script. */
  cli: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  /** Identifies the request. A run that names it does not start with what another request has prepared. Absent in version 1. */
  preparation: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  /** For the stack's owner, although preparing succeeded. */
  warning: Type.Optional(message),
  /** The commit of `compareWith`, if no selected file differs from it; absent if one does, or if that is not known. */
  unchangedSince: Type.Optional(Type.String({ maxLength: 64 })),
  /** What this call changed; false for what was already prepared. */
  changed: Type.Object({
    source: Type.Boolean(),
    dependencies: Type.Boolean(),
    stack: Type.Boolean(),
    config: Type.Boolean(),
  }),
  /** Milliseconds spent in each phase. */
  timings: Type.Object({
    source: Type.Number(),
    install: Type.Number(),
    stack: Type.Number(),
    config: Type.Number(),
  }),
});
export type Prepared = Static<typeof Prepared>;

export const PrepareResult = Type.Union([
  Type.Object({ ok: Type.Literal(true), prepared: Prepared }),
  Type.Object({ ok: Type.Literal(false), failure: PrepareFailure }),
]);
export type PrepareResult = Static<typeof PrepareResult>;

export const PrepareMessage = Type.Union([
  Type.Object({ type: Type.Literal("phase"), phase: PreparePhase }),
  Type.Object({ type: Type.Literal("done"), result: PrepareResult }),
]);
export type PrepareMessage = Static<typeof PrepareMessage>;
