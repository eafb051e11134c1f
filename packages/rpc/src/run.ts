/** A run: the operation asked for, the events it has, the progress they add up to, and its result. */
import { Type, type Static } from "typebox";
import { maxErrorLines, maxMessageChars, maxOutputTailChars } from "./limits.ts";
import { ProjectInfo } from "./prepare.ts";

const closed = { additionalProperties: false } as const;
const message = Type.String({ maxLength: maxMessageChars });
const urn = Type.String({ minLength: 1, maxLength: 4096 });

/** An Update's UID. It names a folder, so it holds nothing a path could be made of. */
export const RunId = Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$" });
export type RunId = Static<typeof RunId>;

const common = {
  /** What the Pulumi history shows for the run. */
  message: Type.Optional(Type.String({ maxLength: 4096 })),
  parallel: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
  targets: Type.Optional(Type.Array(urn, { maxItems: 2048 })),
  targetDependents: Type.Optional(Type.Boolean()),
  /** Runs the program where the operation would not. */
  runProgram: Type.Optional(Type.Boolean()),
  /** Verbosity of the CLI's own log. */
  logLevel: Type.Optional(Type.Integer({ minimum: 0, maximum: 11 })),
};
const refreshFirst = {
  refresh: Type.Optional(Type.Boolean()),
};
const changing = {
  ...refreshFirst,
  replace: Type.Optional(Type.Array(urn, { maxItems: 2048 })),
  expectNoChanges: Type.Optional(Type.Boolean()),
};

export const Operation = Type.Union([
  Type.Object({ kind: Type.Literal("preview"), ...common, ...changing }, closed),
  Type.Object(
    {
      kind: Type.Literal("up"),
      ...common,
      ...changing,
      continueOnError: Type.Optional(Type.Boolean()),
      /** Refreshes in a step of its own, which fails the run when it finds changes. */
      expectNoRefreshChanges: Type.Optional(Type.Boolean()),
    },
    closed,
  ),
  Type.Object({ kind: Type.Literal("refresh"), ...common, expectNoChanges: Type.Optional(Type.Boolean()) }, closed),
  Type.Object(
    {
      kind: Type.Literal("destroy"),
      ...common,
      ...refreshFirst,
      continueOnError: Type.Optional(Type.Boolean()),
      /** Removes the stack too, once it is empty. */
      remove: Type.Optional(Type.Boolean()),
    },
    closed,
  ),
]);
export type Operation = Static<typeof Operation>;

const time = Type.String({ maxLength: 64 });
const hostname = Type.String({ maxLength: 253 });
const pid = Type.Integer({ minimum: 1 });

/**
 * The CLI process of a run that is known to have held the stack's lock. A DIY backend admits one holder at a time, so a
 * lock of this host and PID that was taken between `startedAt` and `lockedAt` is this process's, whatever other clusters do.
 */
export const RunProcess = Type.Object({
  hostname,
  pid,
  startedAt: time,
  /** When the process was first known to hold the lock: it took it before. */
  lockedAt: time,
});
export type RunProcess = Static<typeof RunProcess>;

/**
 * A run of this workspace whose pod no longer exists. With `hostname`, `pid` and `startedAt` it is confirmed: that process
 * took the stack's lock between `from` and `to`. Without them nothing may be concluded from it.
 */
export const LostRun = Type.Object(
  {
    from: time,
    to: time,
    hostname: Type.Optional(hostname),
    pid: Type.Optional(pid),
    startedAt: Type.Optional(time),
  },
  closed,
);
export type LostRun = Static<typeof LostRun>;

export const StartRequest = Type.Object(
  {
    runId: RunId,
    operation: Operation,
    /** The Pulumi stack that the run works on. Without it the run works on the prepared one, as in version 1. */
    stack: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
    /** Runs of this workspace that ended with their pods: what they left behind may be taken away. */
    lostRuns: Type.Optional(Type.Array(LostRun, { maxItems: 64 })),
  },
  closed,
);
export type StartRequest = Static<typeof StartRequest>;

/** All that a request needs whose run the agent knows. */
export const RunReference = Type.Object({ runId: RunId });
export type RunReference = Static<typeof RunReference>;

export const Severity = Type.Union([
  Type.Literal("debug"),
  Type.Literal("info"),
  Type.Literal("warning"),
  Type.Literal("error"),
]);
export type Severity = Static<typeof Severity>;

const optionalUrn = Type.Optional(Type.String({ maxLength: 4096 }));

/** Counts by Pulumi's own names of its steps: create, update, delete, same, create-replacement… */
export const StepCounts = Type.Record(Type.String({ maxLength: 64 }), Type.Integer({ minimum: 0 }));
export type StepCounts = Static<typeof StepCounts>;

export const RunEvent = Type.Union([
  /** A command of the run began: refresh before up is one of its own. */
  Type.Object({ kind: Type.Literal("step"), name: Type.String({ maxLength: 64 }) }),
  Type.Object({
    kind: Type.Literal("resource"),
    phase: Type.Union([Type.Literal("started"), Type.Literal("finished"), Type.Literal("failed")]),
    op: Type.String({ maxLength: 64 }),
    urn: Type.String({ maxLength: 4096 }),
    resourceType: Type.String({ maxLength: 1024 }),
  }),
  Type.Object({ kind: Type.Literal("diagnostic"), severity: Severity, message, urn: optionalUrn }),
  Type.Object({
    kind: Type.Literal("policy"),
    level: Type.String({ maxLength: 64 }),
    policy: Type.String({ maxLength: 512 }),
    message,
    urn: optionalUrn,
  }),
  Type.Object({ kind: Type.Literal("permalink"), url: Type.String({ maxLength: 2048 }) }),
  Type.Object({
    kind: Type.Literal("summary"),
    changes: StepCounts,
    durationSeconds: Type.Number(),
    result: Type.Optional(Type.String({ maxLength: 64 })),
  }),
  /** What the agent itself did or saw: a lock released, an event left out for its size, `process` holding the lock. */
  Type.Object({ kind: Type.Literal("notice"), message, process: Type.Optional(RunProcess) }),
]);
export type RunEvent = Static<typeof RunEvent>;

export const Progress = Type.Object({
  created: Type.Integer(),
  updated: Type.Integer(),
  deleted: Type.Integer(),
  replaced: Type.Integer(),
  unchanged: Type.Integer(),
  /** Reads, imports, refreshes and whatever else changes nothing. */
  other: Type.Integer(),
  failed: Type.Integer(),
  warnings: Type.Integer(),
  errors: Type.Integer(),
  /** The resource that is being worked on, the latest of them. */
  current: Type.Optional(Type.Object({ urn: Type.String({ maxLength: 4096 }), op: Type.String({ maxLength: 64 }) })),
  permalink: Type.Optional(Type.String({ maxLength: 2048 })),
  /** The latest process of the run that is known to have held the stack's lock. */
  process: Type.Optional(RunProcess),
});
export type Progress = Static<typeof Progress>;

export const ErrorClass = Type.Union([
  /** Another update holds the stack (409, or the lock of a DIY backend). */
  Type.Literal("conflict"),
  Type.Literal("invalidToken"),
  Type.Literal("pendingOperations"),
  Type.Literal("programError"),
  Type.Literal("pluginMissing"),
  Type.Literal("policyViolation"),
  Type.Literal("versionTooLow"),
  Type.Literal("stackNotFound"),
  /** `expectNoChanges`, and there were some. */
  Type.Literal("unexpectedChanges"),
  Type.Literal("cancelled"),
  Type.Literal("interrupted"),
  Type.Literal("other"),
]);
export type ErrorClass = Static<typeof ErrorClass>;

export const RunError = Type.Object({
  class: ErrorClass,
  /** One sentence for a status. */
  message,
  /** The program's or the provider's own words. */
  lines: Type.Array(message, { maxItems: maxErrorLines }),
});
export type RunError = Static<typeof RunError>;

export const RunResult = Type.Object({
  outcome: Type.Union([
    Type.Literal("succeeded"),
    Type.Literal("failed"),
    Type.Literal("cancelled"),
    Type.Literal("interrupted"),
  ]),
  operation: Type.Union([
    Type.Literal("preview"),
    Type.Literal("up"),
    Type.Literal("refresh"),
    Type.Literal("destroy"),
  ]),
  stack: Type.String({ maxLength: 512 }),
  /** What ran: an operator that has just started was not there when it was prepared. */
  project: Type.Optional(ProjectInfo),
  revision: Type.String({ maxLength: 512 }),
  startedAt: Type.String({ maxLength: 64 }),
  finishedAt: Type.String({ maxLength: 64 }),
  exitCode: Type.Optional(Type.Integer()),
  progress: Progress,
  changes: StepCounts,
  error: Type.Optional(RunError),
  /** The end of what the CLI printed. The agent keeps the whole. */
  output: Type.Object({
    tail: Type.String({ maxLength: maxOutputTailChars }),
    bytes: Type.Integer({ minimum: 0 }),
    truncated: Type.Boolean(),
  }),
  /** Names of the stack's outputs, where the run told them; `Outputs` has the values. */
  outputs: Type.Optional(
    Type.Object({
      names: Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 4096 }),
      secretNames: Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 4096 }),
    }),
  ),
});
export type RunResult = Static<typeof RunResult>;

export const StartResult = Type.Object({
  /** `started` by this call; `running` and `finished` by an earlier one. */
  state: Type.Union([Type.Literal("started"), Type.Literal("running"), Type.Literal("finished")]),
  lastSeq: Type.Integer({ minimum: 0 }),
  progress: Progress,
  result: Type.Optional(RunResult),
});
export type StartResult = Static<typeof StartResult>;

export const WatchRequest = Type.Object(
  {
    runId: RunId,
    /** The first sequence number wanted; they begin at 1. */
    fromSeq: Type.Integer({ minimum: 1 }),
  },
  closed,
);
export type WatchRequest = Static<typeof WatchRequest>;

const seq = Type.Integer({ minimum: 0 });

export const WatchMessage = Type.Union([
  Type.Object({ type: Type.Literal("event"), seq, time: Type.String({ maxLength: 64 }), event: RunEvent }),
  /** Sent when there is nothing else to say: the run is alive, and this far. */
  Type.Object({ type: Type.Literal("progress"), seq, progress: Progress }),
  /** The last message of a stream. */
  Type.Object({ type: Type.Literal("result"), seq, result: RunResult }),
]);
export type WatchMessage = Static<typeof WatchMessage>;

export const CancelRequest = Type.Object(
  {
    runId: RunId,
    /** How long the CLI may take to stop by itself before it is killed. */
    graceSeconds: Type.Optional(Type.Number({ minimum: 0, maximum: 3600 })),
  },
  closed,
);
export type CancelRequest = Static<typeof CancelRequest>;

export const CancelResult = Type.Object({
  state: Type.Union([Type.Literal("cancelling"), Type.Literal("finished")]),
});
export type CancelResult = Static<typeof CancelResult>;

export const OutputsRequest = Type.Object({ runId: RunId }, closed);
export type OutputsRequest = Static<typeof OutputsRequest>;

export const Output = Type.Object({
  name: Type.String({ maxLength: 1024 }),
  secret: Type.Boolean(),
  /** A preview cannot know every value. */
  known: Type.Boolean(),
  /** Any JSON value; absent when it is not known. */
  value: Type.Optional(Type.Unknown()),
});
export type Output = Static<typeof Output>;

export const OutputsMessage = Type.Union([
  Type.Object({ type: Type.Literal("output"), output: Output }),
  Type.Object({ type: Type.Literal("end"), count: Type.Integer({ minimum: 0 }) }),
]);
export type OutputsMessage = Static<typeof OutputsMessage>;
