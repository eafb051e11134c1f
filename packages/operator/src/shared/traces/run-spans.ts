/**
 * The spans of a run, from the events that the operator follows: one for the run, one for each command of the CLI, and one
 * for each resource. Their IDs depend only on the Update and the numbers of the events, so an operator that reads the events
 * again after a restart records the same spans.
 */
import { urnName } from "@pko/records";
import type { NumberedEvent, ResourceEvent } from "@pko/records";
import type { RunResult } from "@pko/rpc";
import { spanIdOf, type Attributes, type Span } from "@pko/process/traces";

/** Everything but its trace. */
export type RunSpan = Omit<Span, "traceId">;

interface Command {
  readonly name: string;
  readonly spanId: string;
  readonly startMs: number;
}

export const runSpanId = (uid: string): string => spanIdOf(uid, "run");

export class RunSpans {
  readonly #uid: string;
  readonly #parentSpanId: string;
  #lastSeq = 0;
  #startMs: number | undefined;
  #command: Command | undefined;

  /** `uid`: of the Update. */
  constructor(uid: string, parentSpanId: string) {
    this.#uid = uid;
    this.#parentSpanId = parentSpanId;
  }

  /** The spans that end with the event. Events may be repeated. */
  add({ seq, time, event }: NumberedEvent): RunSpan[] {
    const atMs = Date.parse(time);
    if (seq <= this.#lastSeq || Number.isNaN(atMs)) return [];
    this.#lastSeq = seq;
    this.#startMs ??= atMs;
    switch (event.kind) {
      case "step": {
        const ended = this.#endCommand(atMs);
        this.#command = { name: event.name, spanId: spanIdOf(this.#uid, `command ${seq}`), startMs: atMs };
        return ended;
      }
      case "resource":
        return event.phase === "started" ? [] : [this.#resource(event, { seq, atMs })];
      case "diagnostic":
      case "policy":
      case "permalink":
      case "summary":
      case "notice":
        return [];
    }
  }

  /** The last spans. Without a result, the run was lost at `nowMs`. */
  end(result: RunResult | undefined, nowMs: number): RunSpan[] {
    const endMs = result ? Date.parse(result.finishedAt) : nowMs;
    const startMs = result ? Date.parse(result.startedAt) : this.#startMs;
    if (startMs === undefined) return [];
    const error = result ? result.error?.message : "the result of the run is unknown";
    const run: RunSpan = {
      spanId: runSpanId(this.#uid),
      parentSpanId: this.#parentSpanId,
      isParent: true,
      name: "run",
      kind: "client",
      startMs,
      endMs,
      attributes: result ? resultAttributes(result) : {},
      ...(error !== undefined && { error }),
    };
    return [...this.#endCommand(endMs, error), run];
  }

  #endCommand(endMs: number, error?: string): RunSpan[] {
    const command = this.#command;
    this.#command = undefined;
    if (!command) return [];
    const { name, spanId, startMs } = command;
    const ids = { spanId, parentSpanId: runSpanId(this.#uid), isParent: true } as const;
    return [{ ...ids, name: `pulumi ${name}`, startMs, endMs, ...(error !== undefined && { error }) }];
  }

  #resource(event: ResourceEvent, { seq, atMs }: { readonly seq: number; readonly atMs: number }): RunSpan {
    const { op, urn, resourceType, durationMs = 0 } = event;
    return {
      spanId: spanIdOf(this.#uid, `resource ${seq}`),
      parentSpanId: this.#command?.spanId ?? runSpanId(this.#uid),
      name: `${op} ${resourceType}`,
      startMs: Math.max(this.#startMs ?? atMs, atMs - durationMs),
      endMs: atMs,
      attributes: {
        "pulumi.resource.urn": urn,
        "pulumi.resource.name": urnName(urn),
        "pulumi.resource.type": resourceType,
        "pulumi.resource.operation": op,
      },
      ...(event.phase === "failed" && { error: "the operation failed" }),
    };
  }
}

function resultAttributes({ outcome, operation, stack, revision, error, project }: RunResult): Attributes {
  return {
    "pulumi.operation": operation,
    "pulumi.outcome": outcome,
    "pulumi.stack": stack,
    "pulumi.project": project?.name,
    "pulumi.revision": revision,
    "error.type": error?.class,
  };
}
