/** What is known about a run: its events, folded into resources, diagnostics and progress. */
import {
  addEvent,
  findGaps,
  noProgress,
  urnName,
  urnType,
  type Gap,
  type NumberedEvent,
  type Progress,
  type ResourceEvent,
  type RunEvent,
} from "@pko/records";

import { defined } from "@pko/kube";
import type { RunDiagnostic, RunResource } from "../documents.ts";

/** Pulumi's steps of a replacement, which people see as one operation. */
const replacementSteps: ReadonlySet<string> = new Set([
  "create-replacement",
  "replace",
  "delete-replaced",
  "discard-replaced",
]);
const operationOf = (op: string): string => (replacementSteps.has(op) ? "replace" : op);

/** Operations that change nothing. */
const quiet: ReadonlySet<string> = new Set(["same", "read", "refresh"]);

export const isChange = ({ op, changes }: Pick<RunResource, "op" | "changes">): boolean =>
  !quiet.has(op) || (changes ?? []).length > 0;

/** A resource, and when its operation started. */
export type LiveResource = RunResource & { readonly startedAt?: string };

export class RunLog {
  readonly #events = new Map<number, NumberedEvent>();
  readonly #resources = new Map<string, LiveResource>();
  readonly #diagnostics: RunDiagnostic[] = [];
  #progress: Progress = noProgress;
  #steps: string[] = [];
  #summary: Extract<RunEvent, { kind: "summary" }> | undefined;

  /** The log of these events, in their order. */
  static of(events: readonly NumberedEvent[]): RunLog {
    const log = new RunLog();
    for (const event of events.toSorted((a, b) => a.seq - b.seq)) log.add(event);
    return log;
  }

  /** False for an event that is known already. */
  add(numbered: NumberedEvent): boolean {
    if (this.#events.has(numbered.seq)) return false;
    this.#events.set(numbered.seq, numbered);
    this.#progress = addEvent(this.#progress, numbered.event);
    this.#apply(numbered);
    return true;
  }

  get events(): readonly NumberedEvent[] {
    return [...this.#events.values()].toSorted((a, b) => a.seq - b.seq);
  }

  get gaps(): readonly Gap[] {
    return findGaps(this.events);
  }

  /** In the order in which they were first seen. */
  get resources(): readonly LiveResource[] {
    return [...this.#resources.values()];
  }

  get diagnostics(): readonly RunDiagnostic[] {
    return this.#diagnostics;
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** The current command, such as refresh or up. */
  get step(): string | undefined {
    return this.#steps.at(-1);
  }

  get summary(): Extract<RunEvent, { kind: "summary" }> | undefined {
    return this.#summary;
  }

  #apply({ time, event }: NumberedEvent): void {
    switch (event.kind) {
      case "step":
        this.#steps.push(event.name);
        return;
      case "resource":
        this.#resources.set(event.urn, mergeResource(this.#resources.get(event.urn), event, time));
        return;
      case "diagnostic":
        if (event.severity !== "debug") this.#diagnostics.push(diagnosticOf(event.severity, event.message, event.urn));
        return;
      case "policy":
        this.#diagnostics.push(diagnosticOf(policySeverity(event.level), policyText(event), event.urn));
        return;
      case "summary":
        this.#summary = event;
        return;
      case "permalink":
      case "notice":
        return;
      default:
        // Events of a later version are counted, but not shown.
        event satisfies never;
    }
  }
}

function mergeResource(known: LiveResource | undefined, event: ResourceEvent, time: string): LiveResource {
  const { urn, resourceType, parent, id, omittedChanges } = event;
  const op = operationOf(event.op);
  const before = known?.op === op ? known : undefined;
  return {
    ...before,
    ...defined({ parent, id, omittedChanges, changes: filled(event.changes), replaceKeys: filled(event.replaceKeys) }),
    ...defined({ durationMs: sum(before?.durationMs, event.durationMs) }),
    urn,
    type: resourceType || urnType(urn),
    name: urnName(urn),
    op,
    state: stateAfter(before, event),
    startedAt: before?.startedAt ?? time,
  };
}

const filled = <T>(list: readonly T[] | undefined): T[] | undefined =>
  list && list.length > 0 ? [...list] : undefined;

const sum = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);

/** A replacement continues with its next step; a failed step stays. */
function stateAfter(before: LiveResource | undefined, { phase }: ResourceEvent): RunResource["state"] {
  if (phase === "started") return "running";
  return phase === "failed" || before?.state === "failed" ? "failed" : "done";
}

const diagnosticOf = (
  severity: RunDiagnostic["severity"],
  message: string,
  urn: string | undefined,
): RunDiagnostic => ({
  severity,
  message: message.trimEnd(),
  ...(urn !== undefined && urn !== "" && { urn }),
});

const policySeverity = (level: string): "error" | "warning" => (level === "mandatory" ? "error" : "warning");

const policyText = ({ policy, level, message }: { policy: string; level: string; message: string }): string =>
  `policy ${policy} (${level}): ${message}`;

/** Of a resource, without what only the live view needs. */
export function withoutStart(resource: LiveResource): RunResource {
  const { startedAt: _, ...rest } = resource;
  return rest;
}
