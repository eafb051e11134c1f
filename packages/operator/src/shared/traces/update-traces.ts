/**
 * One trace for each Update: what led to it, the passes of the controllers, the preparation of the workspace, and the run.
 *
 *   update up ─┬─ git poll ─┬─ reconcile Stack ─ reconcile Workspace ─ prepare ─┬─ reconcile Update ─ run ─ pulumi up ─ …
 *              └─ before the Update exists, spans wait in the lane of the Workspace ┘
 *
 * The trace's ID is derived from the Update's UID, and so are the spans that others are connected to: an operator that is
 * restarted continues the same trace. Only the spans that wait for an Update are lost with the process.
 */
import { randomBytes } from "node:crypto";

import { isComplete, stackNameLabel, triggerReasonAnnotation, type Update } from "@pko/api";
import { parseKey, systemClock, type Clock, type Key } from "@pko/kube";
import { spanIdOf, traceIdOf, traceparentOf, type Attributes, type Span } from "@pko/process/traces";
import type { NumberedEvent } from "@pko/records";
import type { RunResult } from "@pko/rpc";

import { parseTimestamp } from "../parse-timestamp.ts";
import { workspaceKeyOf } from "../updates.ts";
import { RunSpans, runSpanId, type RunSpan } from "./run-spans.ts";
import type { Tracer } from "./tracer.ts";

/** A pass of a controller. `steps` are those that changed something. */
export interface TracedPass {
  readonly kind: "Stack" | "Workspace" | "Update";
  readonly reconcileID: string;
  readonly startMs: number;
  readonly steps: readonly string[];
  /** The Stack is up to date: what a poll has found leads to no Update. */
  readonly isUpToDate?: boolean;
}

export interface FoundCommit {
  readonly startMs: number;
  readonly host: string;
  readonly commit: string;
}

export interface TracedPreparation {
  readonly startMs: number;
  readonly phases: readonly { readonly phase: string; readonly startMs: number }[];
  /** Absent if it succeeded. */
  readonly error?: string;
}

/** How an Update has ended. */
export interface TracedEnding {
  readonly reason: string;
  readonly message: string;
  readonly result?: RunResult;
}

/** A span that is not part of a trace yet. */
interface Waiting extends Omit<Span, "traceId" | "spanId" | "parentSpanId"> {
  readonly children?: readonly Waiting[];
}

/** What happens in a Workspace before its next Update exists. */
interface Lane {
  /** Since a pass of the Stack led towards an Update; undefined while only a poll has found a commit. */
  openedAt?: number;
  readonly spans: Waiting[];
}

interface TracedUpdate {
  readonly lane: Key;
  readonly startMs: number;
}

/** A Workspace that does not become ready would collect spans forever. */
const maxLaneSpans = 64;
const maxLanes = 1000;
const maxLaneMs = 3_600_000;
/** The steps of a Stack that are taken for an Update. */
const leading: ReadonlySet<string> = new Set(["requestPrerequisites", "applyWorkspace", "createUpdate"]);

export class UpdateTraces {
  readonly #tracer: Tracer;
  readonly #clock: Clock;
  readonly #lanes = new Map<Key, Lane>();
  readonly #updates = new Map<string, TracedUpdate>();
  readonly #runs = new Map<string, RunSpans>();
  /** The Update of a Workspace that has not ended: the first, if there are several. */
  readonly #current = new Map<Key, string>();

  constructor(tracer: Tracer, clock: Clock = systemClock) {
    this.#tracer = tracer;
    this.#clock = clock;
  }

  /** The ID of the Update's trace; undefined if it is not recorded. */
  traceId(uid: string | undefined): string | undefined {
    const traceId = uid === undefined ? undefined : traceIdOf(uid);
    return traceId !== undefined && this.#tracer.isSampled(traceId) ? traceId : undefined;
  }

  /** For Pulumi: its spans are part of the run. */
  traceparent(uid: string): string {
    const traceId = traceIdOf(uid);
    return traceparentOf({ traceId, spanId: runSpanId(uid) }, this.#tracer.isSampled(traceId));
  }

  /** A Workspace has the name of its Stack. */
  commitFound(stack: Key, { startMs, host, commit }: FoundCommit): void {
    const attributes = { ...objectAttributes("Stack", stack), "server.address": host, "pulumi.revision": commit };
    const span: Waiting = { name: "git poll", kind: "client", startMs, endMs: this.#clock.now(), attributes };
    const lane = this.#laneOf(stack);
    // Earlier polls that led to nothing are not part of it.
    if (lane.openedAt === undefined) lane.spans.length = 0;
    this.#addTo(lane, span);
  }

  stackPassed(stack: Key, pass: TracedPass, recorded: string | undefined): void {
    if (recorded !== undefined) return this.#record(recorded, passSpan(stack, pass, this.#clock.now()));
    if (this.#current.has(stack) || this.#isLaneOpen(stack, pass)) this.workspacePassed(stack, pass);
  }

  workspacePassed(workspace: Key, pass: TracedPass): void {
    if (pass.steps.length > 0) this.#wait(workspace, passSpan(workspace, pass, this.#clock.now()));
  }

  prepared(workspace: Key, { startMs, phases, error }: TracedPreparation): void {
    const endMs = this.#clock.now();
    const children = phases.map(({ phase, startMs: from }, index): Waiting => {
      return { name: `prepare ${phase}`, startMs: from, endMs: phases[index + 1]?.startMs ?? endMs };
    });
    const failure = error === undefined ? {} : { error };
    const attributes = objectAttributes("Workspace", workspace);
    this.#wait(workspace, { name: "prepare", kind: "client", startMs, endMs, attributes, children, ...failure });
  }

  /** Connects what has led to the Update, once. */
  updatePassed(update: Update, pass: TracedPass): void {
    const { uid } = update.metadata;
    if (uid === undefined) return;
    if (isComplete(update)) return this.#endUnreported(uid, update);
    this.#begin(uid, update);
    const { namespace = "", name = "" } = update.metadata;
    const key = `${namespace}/${name}`;
    if (pass.steps.length > 0) this.#record(uid, passSpan(key, pass, this.#clock.now()));
  }

  runEvent(uid: string, event: NumberedEvent): void {
    const run = this.#runs.get(uid) ?? new RunSpans(uid, rootSpanId(uid));
    this.#runs.set(uid, run);
    for (const span of run.add(event)) this.#recordRun(uid, span);
  }

  updateEnded(update: Update, { reason, message, result }: TracedEnding): void {
    const { uid, creationTimestamp } = update.metadata;
    if (uid === undefined) return;
    const endMs = this.#clock.now();
    const run = this.#runs.get(uid) ?? new RunSpans(uid, rootSpanId(uid));
    for (const span of run.end(result, endMs)) this.#recordRun(uid, span);
    const startMs = this.#updates.get(uid)?.startMs ?? parseTimestamp(creationTimestamp) ?? endMs;
    const traceId = this.traceId(uid);
    if (traceId !== undefined) {
      this.#tracer.record({
        traceId,
        spanId: rootSpanId(uid),
        isParent: true,
        name: `update ${update.spec?.type ?? ""}`.trim(),
        startMs,
        endMs,
        attributes: { ...updateAttributes(update), "pulumi.reason": reason },
        ...(reason !== "UpdateSucceeded" && { error: message }),
      });
    }
    this.forget(uid);
  }

  /** The response to the write of its last status was lost, so no pass has ended the Update. */
  #endUnreported(uid: string, update: Update): void {
    if (!this.#updates.has(uid)) return;
    const { reason, message } = failureOf(update) ?? { reason: "UpdateSucceeded", message: "" };
    this.updateEnded(update, { reason, message });
  }

  /** The Update no longer exists. */
  forget(uid: string): void {
    const lane = this.#updates.get(uid)?.lane;
    this.#updates.delete(uid);
    this.#runs.delete(uid);
    if (lane !== undefined && this.#current.get(lane) === uid) this.#current.delete(lane);
  }

  async flush(): Promise<void> {
    await this.#tracer.flush();
  }

  #begin(uid: string, update: Update): void {
    const lane = workspaceKeyOf(update);
    if (!this.#current.has(lane)) this.#current.set(lane, uid);
    if (this.#updates.has(uid)) return;
    const spans = this.#takeLane(lane);
    const createdAt = parseTimestamp(update.metadata.creationTimestamp) ?? this.#clock.now();
    // Timestamps have whole seconds.
    const startMs = spans.length > 0 ? Math.min(...spans.map((span) => span.startMs)) : createdAt;
    this.#updates.set(uid, { lane, startMs });
    for (const span of spans) this.#record(uid, span);
  }

  /** A pass of the Stack opens it with the first step towards an Update. */
  #isLaneOpen(key: Key, { steps, startMs, isUpToDate }: TracedPass): boolean {
    if (steps.some((step) => leading.has(step))) this.#laneOf(key).openedAt ??= startMs;
    const lane = this.#lanes.get(key);
    const isOpen = lane?.openedAt !== undefined;
    // A pass that started before the poll ended does not know the commit.
    const knowsCommit = lane?.spans.every(({ endMs }) => endMs <= startMs);
    if (!isOpen && isUpToDate && knowsCommit) this.#lanes.delete(key);
    return isOpen;
  }

  #takeLane(key: Key): readonly Waiting[] {
    const lane = this.#lanes.get(key);
    this.#lanes.delete(key);
    return lane && !this.#isOld(lane) ? lane.spans : [];
  }

  /** Part of the current Update's trace, or of the next one's. Otherwise it leads to no Update. */
  #wait(workspace: Key, span: Waiting): void {
    const current = this.#current.get(workspace);
    const lane = this.#lanes.get(workspace);
    if (current !== undefined) this.#record(current, span);
    else if (lane?.openedAt !== undefined) this.#addTo(lane, span);
  }

  #laneOf(key: Key): Lane {
    const known = this.#lanes.get(key);
    if (known && !this.#isOld(known)) return known;
    this.#lanes.delete(key);
    const [oldest] = this.#lanes.keys();
    if (this.#lanes.size >= maxLanes && oldest !== undefined) this.#lanes.delete(oldest);
    const lane: Lane = { spans: [] };
    this.#lanes.set(key, lane);
    return lane;
  }

  #isOld({ openedAt, spans }: Lane): boolean {
    const since = openedAt ?? spans[0]?.startMs;
    return since !== undefined && this.#clock.now() - since > maxLaneMs;
  }

  #addTo({ spans }: Lane, span: Waiting): void {
    if (spans.length < maxLaneSpans) spans.push(span);
  }

  #record(uid: string, waiting: Waiting, parentSpanId = rootSpanId(uid)): void {
    const traceId = this.traceId(uid);
    if (traceId === undefined) return;
    const { children = [], ...span } = waiting;
    const spanId = randomBytes(8).toString("hex");
    this.#tracer.record({ ...span, traceId, spanId, parentSpanId, ...(children.length > 0 && { isParent: true }) });
    for (const child of children) this.#record(uid, child, spanId);
  }

  #recordRun(uid: string, span: RunSpan): void {
    const traceId = this.traceId(uid);
    if (traceId !== undefined) this.#tracer.record({ ...span, traceId });
  }
}

const rootSpanId = (uid: string): string => spanIdOf(uid, "update");

const failureOf = ({ status }: Update) =>
  status?.conditions?.find(({ type, status: value }) => type === "Failed" && value === "True");

function passSpan(key: Key, { kind, reconcileID, startMs, steps }: TracedPass, endMs: number): Waiting {
  const attributes = {
    ...objectAttributes(kind, key),
    "pulumi.reconcile.id": reconcileID,
    "pulumi.reconcile.steps": steps.join(", "),
  };
  return { name: `reconcile ${kind}`, startMs, endMs, attributes };
}

function objectAttributes(kind: TracedPass["kind"], key: Key): Attributes {
  const { namespace, name } = parseKey(key);
  return { "k8s.namespace.name": namespace, [`pulumi.${kind.toLowerCase()}.object`]: name };
}

function updateAttributes({ metadata, spec }: Update): Attributes {
  return {
    "k8s.namespace.name": metadata.namespace,
    "pulumi.update.object": metadata.name,
    "pulumi.workspace.object": spec?.workspaceName,
    "pulumi.stack.object": metadata.labels?.[stackNameLabel],
    "pulumi.stack": spec?.stackName,
    "pulumi.operation": spec?.type,
    "pulumi.trigger": metadata.annotations?.[triggerReasonAnnotation],
  };
}
