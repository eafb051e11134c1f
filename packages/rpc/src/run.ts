/** A run: its operation, its events, the progress that they add up to, and its result. */
import { Type, type Static } from "typebox";
import { maxMessageChars, Progress, RunEvent, StepCounts } from "@pko/records";
import { maxErrorLines, maxOutputTailChars, maxPlanChars, maxPlanPartChars } from "./limits.ts";
import { ProjectInfo } from "./prepare.ts";

const closed = { additionalProperties: false } as const;
const message = Type.String({ maxLength: maxMessageChars });
const urn = Type.String({ minLength: 1, maxLength: 4096 });

/** An Update's UID. It is also a folder's name, so it must not contain path separators or dots. */
export const RunId = Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$" });
export type RunId = Static<typeof RunId>;

const common = {
  /** Shown in the stack's Pulumi history. */
  message: Type.Optional(Type.String({ maxLength: 4096 })),
  parallel: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
  targets: Type.Optional(Type.Array(urn, { maxItems: 2048 })),
  targetDependents: Type.Optional(Type.Boolean()),
  /** Runs the program also for an operation that would not (refresh, destroy). */
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

/** Keeps the plan: `plan` of the result describes it, and the method `plan` returns it. */
const savePlan = Type.Optional(Type.Boolean());
/** Shows what would change, and changes nothing. */
const previewOnly = Type.Optional(Type.Boolean());

/** A plan as the method `plan` returned it. It is opaque to the operator. */
export const SealedPlan = Type.Object(
  { digest: Type.String({ minLength: 1, maxLength: 128 }), content: Type.String({ maxLength: maxPlanChars }) },
  closed,
);
export type SealedPlan = Static<typeof SealedPlan>;
/** Applies exactly this plan, or fails before it changes anything. */
const applyPlan = Type.Optional(SealedPlan);

export const Operation = Type.Union([
  Type.Object({ kind: Type.Literal("preview"), ...common, ...changing, savePlan }, closed),
  Type.Object(
    {
      kind: Type.Literal("up"),
      ...common,
      ...changing,
      continueOnError: Type.Optional(Type.Boolean()),
      /** Refreshes in a separate step, which fails the run if it finds changes. */
      expectNoRefreshChanges: Type.Optional(Type.Boolean()),
      applyPlan,
    },
    closed,
  ),
  Type.Object(
    {
      kind: Type.Literal("refresh"),
      ...common,
      expectNoChanges: Type.Optional(Type.Boolean()),
      previewOnly,
      /** Removes interrupted creates from the state. */
      clearPendingCreates: Type.Optional(Type.Boolean()),
    },
    closed,
  ),
  Type.Object(
    {
      kind: Type.Literal("destroy"),
      ...common,
      ...refreshFirst,
      continueOnError: Type.Optional(Type.Boolean()),
      /** Removes the stack after its resources. */
      remove: Type.Optional(Type.Boolean()),
      previewOnly,
      /** Only with `previewOnly`. */
      savePlan,
      applyPlan,
    },
    closed,
  ),
]);
export type Operation = Static<typeof Operation>;

const time = Type.String({ maxLength: 64 });
const hostname = Type.String({ maxLength: 253 });
const pid = Type.Integer({ minimum: 1 });

/**
 * A run of this workspace whose pod no longer exists. `hostname`, `pid` and `startedAt` confirm that this process acquired
 * the stack's lock between `from` and `to`. Without them the agent must not break a lock for this run.
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

const objectName = Type.String({ minLength: 1, maxLength: 253 });

/** What a run belongs to, for the agent's log and for Pulumi's traces. What the run does must not depend on it. */
export const RunOrigin = Type.Object(
  {
    /** The names of the Update and of its Stack. */
    update: objectName,
    stack: Type.Optional(objectName),
    /** W3C Trace Context: Pulumi's spans become part of this one. Absent if traces are off. */
    traceparent: Type.Optional(Type.String({ pattern: "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$" })),
  },
  closed,
);
export type RunOrigin = Static<typeof RunOrigin>;

const seconds = Type.Integer({ minimum: 1 });

export const StartRequest = Type.Object(
  {
    runId: RunId,
    operation: Operation,
    /** The Pulumi stack of the run. Without it the run uses the prepared stack, as in version 1. */
    stack: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
    /**
     * The run starts only with what this request has prepared (`Prepared.preparation`). Empty if the operator does not know
     * it: then no run starts, but one that was started before is attached to. Absent in a request of version 1.
     */
    preparation: Type.Optional(Type.String({ maxLength: 128 })),
    /** Runs of this workspace that ended with their pods: the agent may remove the locks that they left behind. */
    lostRuns: Type.Optional(Type.Array(LostRun, { maxItems: 64 })),
    /** After `total`, or after `silence` without output, the run is cancelled, and killed after the grace period. */
    timeouts: Type.Optional(
      Type.Object({ totalSeconds: Type.Optional(seconds), silenceSeconds: Type.Optional(seconds) }, closed),
    ),
    /** Absent in a request of version 1. */
    origin: Type.Optional(RunOrigin),
  },
  closed,
);
export type StartRequest = Static<typeof StartRequest>;

/** The part of a request that suffices when the agent knows the run. */
export const RunReference = Type.Object({ runId: RunId });
export type RunReference = Static<typeof RunReference>;

export const ErrorClass = Type.Union([
  /** Another update has locked the stack (409, or the lock of a DIY backend). */
  Type.Literal("conflict"),
  Type.Literal("invalidToken"),
  Type.Literal("pendingOperations"),
  Type.Literal("programError"),
  Type.Literal("pluginMissing"),
  Type.Literal("policyViolation"),
  Type.Literal("versionTooLow"),
  Type.Literal("stackNotFound"),
  /** `expectNoChanges` was set and there were changes. */
  Type.Literal("unexpectedChanges"),
  Type.Literal("cancelled"),
  Type.Literal("interrupted"),
  /** The run exceeded one of its timeouts. */
  Type.Literal("timedOut"),
  /** The program, the configuration, the options or the image differ from those of the plan. Nothing was changed. */
  Type.Literal("planChanged"),
  /** The state has changed since the plan was made. Nothing was changed. */
  Type.Literal("planStale"),
  /** Pulumi would do something that the plan does not contain. Nothing was changed. */
  Type.Literal("planMismatch"),
  /** The stack's key has changed, so the plan cannot be decrypted. Nothing was changed. */
  Type.Literal("planUnreadable"),
  /** The plan was applied in part: the rest needs a new plan. */
  Type.Literal("planStopped"),
  Type.Literal("other"),
]);
export type ErrorClass = Static<typeof ErrorClass>;

export const RunError = Type.Object({
  class: ErrorClass,
  /** One sentence for the object's status. */
  message,
  /** The error output of the program or provider. */
  lines: Type.Array(message, { maxItems: maxErrorLines }),
});
export type RunError = Static<typeof RunError>;

/** A plan that a run kept. */
export const PlanSummary = Type.Object({
  digest: Type.String({ minLength: 1, maxLength: 128 }),
  /** Whether it changes anything. */
  changes: Type.Boolean(),
  /** Whether it replaces or deletes resources. */
  destructive: Type.Boolean(),
  unknownInputs: Type.Integer({ minimum: 0 }),
  /** One line for each resource that changes, replacements and deletions first. Without values. */
  summary: message,
});
export type PlanSummary = Static<typeof PlanSummary>;

/** What a refresh with `previewOnly` has found. */
export const Drift = Type.Object({
  resources: Type.Array(
    Type.Object({
      urn: Type.String({ maxLength: 4096 }),
      operation: Type.String({ maxLength: 64 }),
      properties: Type.Array(Type.String({ maxLength: 256 }), { maxItems: 64 }),
    }),
    { maxItems: 100 },
  ),
  omitted: Type.Integer({ minimum: 0 }),
});
export type Drift = Static<typeof Drift>;

export const PendingOperation = Type.Object({
  urn: Type.String({ maxLength: 4096 }),
  operation: Type.String({ maxLength: 64 }),
});
export type PendingOperation = Static<typeof PendingOperation>;

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
  /** Which project ran: an operator that restarted did not see it prepared. */
  project: Type.Optional(ProjectInfo),
  revision: Type.String({ maxLength: 512 }),
  startedAt: Type.String({ maxLength: 64 }),
  finishedAt: Type.String({ maxLength: 64 }),
  exitCode: Type.Optional(Type.Integer()),
  progress: Progress,
  changes: StepCounts,
  error: Type.Optional(RunError),
  plan: Type.Optional(PlanSummary),
  drift: Type.Optional(Drift),
  /** Operations on resources that were interrupted: Pulumi does not know their result. */
  pendingOperations: Type.Optional(Type.Array(PendingOperation, { maxItems: 100 })),
  /** The end of the CLI's output. The agent keeps all of it. */
  output: Type.Object({
    tail: Type.String({ maxLength: maxOutputTailChars }),
    bytes: Type.Integer({ minimum: 0 }),
    truncated: Type.Boolean(),
  }),
  /** Names of the stack's outputs if the run printed them; the method `outputs` returns the values. */
  outputs: Type.Optional(
    Type.Object({
      names: Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 4096 }),
      secretNames: Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 4096 }),
    }),
  ),
});
export type RunResult = Static<typeof RunResult>;

export const StartResult = Type.Object({
  /** `started` by this call; `running` and `finished` were started by an earlier call. */
  state: Type.Union([Type.Literal("started"), Type.Literal("running"), Type.Literal("finished")]),
  lastSeq: Type.Integer({ minimum: 0 }),
  progress: Progress,
  result: Type.Optional(RunResult),
});
export type StartResult = Static<typeof StartResult>;

export const WatchRequest = Type.Object(
  {
    runId: RunId,
    /** The sequence number to start with; the first is 1. */
    fromSeq: Type.Integer({ minimum: 1 }),
  },
  closed,
);
export type WatchRequest = Static<typeof WatchRequest>;

const seq = Type.Integer({ minimum: 0 });

export const WatchMessage = Type.Union([
  Type.Object({ type: Type.Literal("event"), seq, time: Type.String({ maxLength: 64 }), event: RunEvent }),
  /** Sent when there are no new events: the run is alive, with this progress. */
  Type.Object({ type: Type.Literal("progress"), seq, progress: Progress }),
  /** The last message. */
  Type.Object({ type: Type.Literal("result"), seq, result: RunResult }),
]);
export type WatchMessage = Static<typeof WatchMessage>;

export const CancelRequest = Type.Object(
  {
    runId: RunId,
    /** How long the CLI may take to stop before it is killed. */
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
  /** False for a value that a preview cannot know. */
  known: Type.Boolean(),
  /** Any JSON value; absent if unknown. */
  value: Type.Optional(Type.Unknown()),
});
export type Output = Static<typeof Output>;

export const PlanRequest = Type.Object({ runId: RunId }, closed);
export type PlanRequest = Static<typeof PlanRequest>;

/** The content of a `SealedPlan`, in parts. */
export const PlanMessage = Type.Union([
  Type.Object({ type: Type.Literal("part"), content: Type.String({ maxLength: maxPlanPartChars }) }),
  Type.Object({ type: Type.Literal("end"), digest: Type.String({ maxLength: 128 }) }),
]);
export type PlanMessage = Static<typeof PlanMessage>;

export const OutputsMessage = Type.Union([
  Type.Object({ type: Type.Literal("output"), output: Output }),
  Type.Object({ type: Type.Literal("end"), count: Type.Integer({ minimum: 0 }) }),
]);
export type OutputsMessage = Static<typeof OutputsMessage>;
