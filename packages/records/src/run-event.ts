/** What happens in a run, as the agent reports it: the CLI's engine events, with secrets masked, and its own notices. */
import { Type, type Static } from "typebox";
import { maxIdChars, maxMessageChars, maxPathChars, maxPropertyChanges, maxUrnChars, maxValueChars } from "./limits.ts";

const message = Type.String({ maxLength: maxMessageChars });
const urn = Type.String({ maxLength: maxUrnChars });
const optionalUrn = Type.Optional(urn);
const time = Type.String({ maxLength: 64 });

/**
 * A run's CLI process that has held the stack's lock. A DIY backend allows one lock at a time, so a lock with this host
 * and PID that was acquired between `startedAt` and `lockedAt` belongs to this process, not to one in another cluster.
 */
export const RunProcess = Type.Object({
  hostname: Type.String({ maxLength: 253 }),
  pid: Type.Integer({ minimum: 1 }),
  startedAt: time,
  /** When the process was first known to hold the lock: it acquired the lock before that. */
  lockedAt: time,
});
export type RunProcess = Static<typeof RunProcess>;

export const Severity = Type.Union([
  Type.Literal("debug"),
  Type.Literal("info"),
  Type.Literal("warning"),
  Type.Literal("error"),
]);
export type Severity = Static<typeof Severity>;

/** Counts by Pulumi's step names: create, update, delete, same, create-replacement… */
export const StepCounts = Type.Record(Type.String({ maxLength: 64 }), Type.Integer({ minimum: 0 }));
export type StepCounts = Static<typeof StepCounts>;

const value = Type.Optional(Type.String({ maxLength: maxValueChars }));

/** A property that a step changes. */
export const PropertyChange = Type.Object({
  /** In the notation of Pulumi: `spec.ports[0]`, `data["a.b"]`. */
  path: Type.String({ maxLength: maxPathChars }),
  /** Pulumi's name: add, update, delete, add-replace, update-replace, delete-replace. */
  kind: Type.String({ maxLength: 32 }),
  /** As JSON, cut at the limit; a secret is `"[secret]"`. Absent if there is none, it is unknown, or the event is full. */
  old: value,
  new: value,
});
export type PropertyChange = Static<typeof PropertyChange>;

const resourceEvent = Type.Object({
  kind: Type.Literal("resource"),
  phase: Type.Union([Type.Literal("started"), Type.Literal("finished"), Type.Literal("failed")]),
  op: Type.String({ maxLength: 64 }),
  urn,
  resourceType: Type.String({ maxLength: 1024 }),
  parent: optionalUrn,
  /** The provider's URN. */
  provider: optionalUrn,
  /** The ID that the provider gave the resource. */
  id: Type.Optional(Type.String({ maxLength: maxIdChars })),
  changes: Type.Optional(Type.Array(PropertyChange, { maxItems: maxPropertyChanges })),
  /** How many more properties change. */
  omittedChanges: Type.Optional(Type.Integer({ minimum: 1 })),
  /** The properties because of which the resource is replaced. */
  replaceKeys: Type.Optional(Type.Array(Type.String({ maxLength: maxPathChars }), { maxItems: maxPropertyChanges })),
  /** From the start of the step, in milliseconds. Absent while it runs. */
  durationMs: Type.Optional(Type.Number({ minimum: 0 })),
});

export const RunEvent = Type.Union([
  /** A command of the run started: a refresh before an up is a separate command. */
  Type.Object({ kind: Type.Literal("step"), name: Type.String({ maxLength: 64 }) }),
  resourceEvent,
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
  /** From the agent itself: it removed a lock, dropped an event for its size, or saw `process` hold the lock. */
  Type.Object({ kind: Type.Literal("notice"), message, process: Type.Optional(RunProcess) }),
]);
export type RunEvent = Static<typeof RunEvent>;
export type ResourceEvent = Extract<RunEvent, { kind: "resource" }>;

/** An event with its place in the run. The first has the number 1; no number is used twice. */
export const NumberedEvent = Type.Object({ seq: Type.Integer({ minimum: 1 }), time, event: RunEvent });
export type NumberedEvent = Static<typeof NumberedEvent>;
