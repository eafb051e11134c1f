/** Adds events up to progress; operator and agent use the same function. */
import { Type, type Static } from "typebox";
import { RunProcess, type ResourceEvent, type RunEvent } from "./run-event.ts";

export const Progress = Type.Object({
  created: Type.Integer(),
  updated: Type.Integer(),
  deleted: Type.Integer(),
  replaced: Type.Integer(),
  unchanged: Type.Integer(),
  /** Reads, imports, refreshes and other steps that change nothing. */
  other: Type.Integer(),
  failed: Type.Integer(),
  warnings: Type.Integer(),
  errors: Type.Integer(),
  /** The resource whose step started last and has not finished. */
  current: Type.Optional(Type.Object({ urn: Type.String({ maxLength: 4096 }), op: Type.String({ maxLength: 64 }) })),
  permalink: Type.Optional(Type.String({ maxLength: 2048 })),
  /** The run's latest process that has held the stack's lock. */
  process: Type.Optional(RunProcess),
});
export type Progress = Static<typeof Progress>;

export const noProgress: Progress = {
  created: 0,
  updated: 0,
  deleted: 0,
  replaced: 0,
  unchanged: 0,
  other: 0,
  failed: 0,
  warnings: 0,
  errors: 0,
};

export function addEvent(progress: Progress, event: RunEvent): Progress {
  switch (event.kind) {
    case "resource":
      return addResource(progress, event);
    case "diagnostic":
      if (event.severity === "warning") return { ...progress, warnings: progress.warnings + 1 };
      if (event.severity === "error") return { ...progress, errors: progress.errors + 1 };
      return progress;
    case "permalink":
      return { ...progress, permalink: event.url };
    case "summary": {
      const { current: _, ...rest } = progress;
      return rest;
    }
    case "notice":
      return event.process ? { ...progress, process: event.process } : progress;
    case "step":
    case "policy":
      return progress;
    default:
      // Events of a later version do not count.
      event satisfies never;
      return progress;
  }
}

function addResource(progress: Progress, event: ResourceEvent): Progress {
  if (event.phase === "started") return { ...progress, current: { urn: event.urn, op: event.op } };
  const { current, ...rest } = progress;
  const still = current && current.urn !== event.urn ? { ...rest, current } : rest;
  if (event.phase === "failed") return { ...still, failed: still.failed + 1 };
  // The engine creates provider resources itself, and its summary does not count them either.
  const counter = event.resourceType.startsWith("pulumi:providers:") ? undefined : counterOf(event.op);
  return counter ? { ...still, [counter]: still[counter] + 1 } : still;
}

type Counter = "created" | "updated" | "deleted" | "replaced" | "unchanged" | "other";

/** The engine replaces a resource in three steps (create, replace, delete). Only `replace` counts, so it is one change. */
function counterOf(op: string): Counter | undefined {
  switch (op) {
    case "create":
      return "created";
    case "update":
      return "updated";
    case "delete":
      return "deleted";
    case "replace":
      return "replaced";
    case "same":
      return "unchanged";
    case "create-replacement":
    case "delete-replaced":
    case "discard-replaced":
      return undefined;
    default:
      return "other";
  }
}
