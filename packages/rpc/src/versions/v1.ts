/**
 * Version 1 of the protocol: the requests that an agent of version 1 accepts, and the values that an operator of version 1
 * understands. It never changes, even if the current schemas do; test/integration/skew compares it with the frozen
 * version. Delete it when version 1 is no longer supported.
 */
import { Type, type Static } from "typebox";
import { maxMessageChars } from "@pko/records";
import { RunId } from "../run.ts";
import type { Vocabulary } from "./vocabulary.ts";

const closed = { additionalProperties: false } as const;
const text = (maxLength: number) => Type.String({ maxLength });
const nonEmpty = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const flag = Type.Optional(Type.Boolean());
const oneOf = (...values: readonly string[]) => Type.Union(values.map((value) => Type.Literal(value)));

const GitAuth = Type.Union([
  Type.Object({ kind: Type.Literal("token"), token: nonEmpty(16_384) }, closed),
  Type.Object({ kind: Type.Literal("basic"), username: text(1024), password: text(16_384) }, closed),
  Type.Object(
    {
      kind: Type.Literal("ssh"),
      privateKey: nonEmpty(65_536),
      passphrase: Type.Optional(text(4096)),
      knownHosts: text(262_144),
    },
    closed,
  ),
]);

const Source = Type.Union([
  Type.Object(
    {
      kind: Type.Literal("git"),
      url: nonEmpty(2048),
      commit: Type.Optional(text(64)),
      ref: Type.Optional(text(512)),
      shallow: flag,
      dir: Type.Optional(text(1024)),
      auth: Type.Optional(GitAuth),
      ca: Type.Optional(text(262_144)),
    },
    closed,
  ),
  Type.Object(
    {
      kind: Type.Literal("flux"),
      url: nonEmpty(2048),
      digest: nonEmpty(256),
      dir: Type.Optional(text(1024)),
      maxUnpackedBytes: Type.Optional(Type.Integer({ minimum: -1 })),
    },
    closed,
  ),
  Type.Object(
    {
      kind: Type.Literal("files"),
      files: Type.Record(nonEmpty(512), Type.String()),
      revision: Type.Optional(text(256)),
    },
    closed,
  ),
  Type.Object({ kind: Type.Literal("local"), dir: nonEmpty(1024) }, closed),
  Type.Object({ kind: Type.Literal("project"), name: nonEmpty(256), runtime: nonEmpty(64) }, closed),
]);

const ConfigValue = Type.Union([
  Type.Object({ from: Type.Literal("value"), value: Type.Unknown() }, closed),
  Type.Object({ from: Type.Literal("env"), name: nonEmpty(512), json: flag }, closed),
  Type.Object({ from: Type.Literal("file"), path: nonEmpty(1024), json: flag }, closed),
]);

const StackSettings = Type.Object(
  {
    name: nonEmpty(512),
    create: Type.Boolean(),
    secretsProvider: Type.Optional(text(2048)),
    config: Type.Array(Type.Object({ key: nonEmpty(512), value: ConfigValue, secret: flag, path: flag }, closed), {
      maxItems: 4096,
    }),
    environments: Type.Array(nonEmpty(512), { maxItems: 256 }),
  },
  closed,
);

export const PrepareRequestV1 = Type.Object({ source: Source, stack: StackSettings }, closed);
export type PrepareRequestV1 = Static<typeof PrepareRequestV1>;

const urns = Type.Optional(Type.Array(nonEmpty(4096), { maxItems: 2048 }));
const common = {
  message: Type.Optional(text(4096)),
  parallel: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
  targets: urns,
  targetDependents: flag,
  runProgram: flag,
  logLevel: Type.Optional(Type.Integer({ minimum: 0, maximum: 11 })),
};
const changing = { refresh: flag, replace: urns, expectNoChanges: flag };

const Operation = Type.Union([
  Type.Object({ kind: Type.Literal("preview"), ...common, ...changing }, closed),
  Type.Object(
    { kind: Type.Literal("up"), ...common, ...changing, continueOnError: flag, expectNoRefreshChanges: flag },
    closed,
  ),
  Type.Object({ kind: Type.Literal("refresh"), ...common, expectNoChanges: flag }, closed),
  Type.Object({ kind: Type.Literal("destroy"), ...common, refresh: flag, continueOnError: flag, remove: flag }, closed),
]);

const LostRun = Type.Object({ from: text(64), to: text(64) }, closed);

export const StartRequestV1 = Type.Object(
  { runId: RunId, operation: Operation, lostRuns: Type.Optional(Type.Array(LostRun, { maxItems: 64 })) },
  closed,
);
export type StartRequestV1 = Static<typeof StartRequestV1>;

const message = text(maxMessageChars);
const urn = Type.Optional(text(4096));

export const vocabularyV1: Vocabulary = {
  event: Type.Union([
    Type.Object({ kind: Type.Literal("step"), name: text(64) }),
    Type.Object({
      kind: Type.Literal("resource"),
      phase: oneOf("started", "finished", "failed"),
      op: text(64),
      urn: text(4096),
      resourceType: text(1024),
    }),
    Type.Object({
      kind: Type.Literal("diagnostic"),
      severity: oneOf("debug", "info", "warning", "error"),
      message,
      urn,
    }),
    Type.Object({ kind: Type.Literal("policy"), level: text(64), policy: text(512), message, urn }),
    Type.Object({ kind: Type.Literal("permalink"), url: text(2048) }),
    Type.Object({
      kind: Type.Literal("summary"),
      changes: Type.Record(text(64), Type.Integer({ minimum: 0 })),
      durationSeconds: Type.Number(),
      result: Type.Optional(text(64)),
    }),
    Type.Object({ kind: Type.Literal("notice"), message }),
  ]),
  startState: oneOf("started", "running", "finished"),
  cancelState: oneOf("cancelling", "finished"),
  outcome: oneOf("succeeded", "failed", "cancelled", "interrupted"),
  operation: oneOf("preview", "up", "refresh", "destroy"),
  errorClass: oneOf(
    "conflict",
    "invalidToken",
    "pendingOperations",
    "programError",
    "pluginMissing",
    "policyViolation",
    "versionTooLow",
    "stackNotFound",
    "unexpectedChanges",
    "cancelled",
    "interrupted",
    "other",
  ),
  preparePhase: oneOf("source", "install", "stack", "config"),
  prepareReason: oneOf(
    "sourceInvalid",
    "sourceUnauthorized",
    "sourceNotFound",
    "sourceUnavailable",
    "sourceRefused",
    "projectInvalid",
    "installFailed",
    "stackNotFound",
    "invalidToken",
    "backendUnavailable",
    "configInvalid",
    "versionTooLow",
    "toolMissing",
    "superseded",
    "other",
  ),
  errorCode: oneOf(
    "invalidRequest",
    "unknownMethod",
    "notFound",
    "busy",
    "unprepared",
    "runMismatch",
    "tooLarge",
    "stopping",
    "failed",
    "internal",
  ),
};
