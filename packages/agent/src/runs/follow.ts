/** Follows one command of a run: converts its engine events to the run's, and collects what explains its end. */
import { type RunEvent, type StepCounts } from "@pko/records";
import { errorMessage, pause, type Drift } from "@pko/rpc";
import { parseEngineEvent, type Cleaner, type EngineEvent } from "../pulumi/engine-events.ts";
import { DriftFindings, driftedResource } from "../pulumi/drift.ts";
import { firstKnown, type KnownError } from "../pulumi/explain.ts";
import type { StepKind } from "../pulumi/operation.ts";
import { outputsFromEvent, type EventOutputs } from "../pulumi/outputs.ts";
import { cutPlanValues, hasPlanValues } from "../plans/refusal.ts";
import { truncate, type Clean } from "../system/clean-text.ts";
import type { Log } from "../system/log.ts";
import { EventGate } from "./event-gate.ts";
import type { EventLog } from "./event-log.ts";
import { showsLock } from "../pulumi/locks.ts";
import { findPermalink, readHead, type Launched, type LaunchEnd } from "./launcher.ts";
import { relayOutput } from "./relay.ts";
import type { RunFolder } from "./run-folder.ts";
import { StepTimes } from "./step-times.ts";
import { tailRewritten } from "./tail.ts";

interface FollowOptions {
  readonly folder: RunFolder;
  readonly launch: number;
  readonly events: EventLog;
  readonly kind: StepKind;
  readonly isDriftCheck: boolean;
  readonly pollMs: number;
  readonly clean: Cleaner;
  readonly log: Log;
  /** Called once when the command holds the stack's lock; absent if that is already known. */
  readonly onLock?: () => Promise<void>;
  readonly shows: Shows;
}

/**
 * How much of the CLI's output may be shown: everything; only standard output, because the verbose log in standard error
 * has credentials that cannot be masked; or nothing, because this agent does not know the secrets to mask.
 */
export type Shows = "everything" | "output" | "nothing";

/** The result of a command. */
export interface Followed {
  readonly end: LaunchEnd;
  readonly errorLines: readonly Clean[];
  /** The meaning of the errors, if known. */
  readonly known: KnownError | undefined;
  readonly isPolicyViolated: boolean;
  /** The CLI found interrupted operations in the state. */
  readonly warnsOfPending: boolean;
  readonly outputs: EventOutputs | undefined;
  readonly changes: StepCounts;
  /** The engine's own result, if it reported one. */
  readonly summary: string | undefined;
  /** Only of a drift check. */
  readonly drift: Drift | undefined;
  /** Whether the command ended before it could change anything. */
  readonly hasOnlyChecked: boolean;
  /** The resources at which the engine refused the plan. */
  readonly refusedUrns: readonly string[];
}

/** A larger event is dropped; outputs in it are read from the CLI. */
const maxEventBytes = 4 * 1024 * 1024;
const maxErrorLines = 400;
const maxDiagnostics = 5_000;

export async function followLaunch(launched: Launched, options: FollowOptions): Promise<Followed> {
  const { folder, events, pollMs } = options;
  const origin = events.origin?.launch === options.launch ? events.origin.sequence : -1;
  const link = followPermalink(launched, options);
  const lock = followLock(launched, options);
  const relayed = relayOutput(launched, {
    files: relayedFiles(options),
    pollMs,
    clean: options.clean,
    log: options.log,
    ...(options.kind === "planned" && { isLast: hasPlanValues }),
  });
  let findings = new Findings(options);
  let gate = new EventGate(options.kind);
  let times = new StepTimes();
  const { over } = launched;
  for await (const line of tailRewritten({
    path: folder.engineLog(options.launch),
    maxLineBytes: maxEventBytes,
    pollMs,
    over,
  })) {
    if (line.kind === "rewritten") {
      // The check has succeeded. The CLI writes the events of the update to the same file.
      [findings, gate, times] = [new Findings(options), new EventGate(options.kind), new StepTimes()];
      continue;
    }
    if (line.kind === "tooLong") {
      await events.append({
        kind: "notice",
        message: `dropped an event of ${line.bytes} bytes, because it is too large`,
      });
      continue;
    }
    const parsed = parseEngineEvent(line.text, options.clean);
    if (!parsed) continue;
    const event = times.add(parsed, performance.now());
    const engine = event ? { ...parsed, event: findings.visible(event) } : parsed;
    findings.add(engine);
    for (const { event: passed, sequence } of gate.pass(engine)) {
      // Skip events that an earlier agent process has appended.
      if (sequence <= origin || !findings.accepts(passed)) continue;
      await events.append(passed, { launch: options.launch, sequence });
    }
  }
  const end = await launched.ended;
  // Kill plugins that outlived the CLI.
  launched.kill();
  await Promise.all([link, lock, relayed]);
  if (options.kind === "planned") await cutOutput(options);
  const followed = findings.with(end, gate.isOpen);
  // What a failed check reported explains its failure.
  for (const { event, sequence } of isSuccess(followed) ? [] : gate.held()) {
    if (sequence > origin && findings.accepts(event)) await events.append(event, { launch: options.launch, sequence });
  }
  return followed;
}

/** Before anything else reads these files. */
async function cutOutput({ folder, launch }: FollowOptions): Promise<void> {
  await Promise.all([cutPlanValues(folder.stdout(launch)), cutPlanValues(folder.stderr(launch))]);
}

function relayedFiles({ shows, folder, launch }: FollowOptions): string[] {
  switch (shows) {
    case "everything":
      return [folder.stdout(launch), folder.stderr(launch)];
    case "output":
      return [folder.stdout(launch)];
    case "nothing":
      return [];
  }
}

export function isSuccess({ end, summary }: Followed): boolean {
  return end.kind === "exited" ? end.code === 0 : end.kind === "unseen" && summary === "succeeded";
}

class Findings {
  readonly #options: FollowOptions;
  readonly #errorLines: Clean[] = [];
  #known: KnownError | undefined;
  #isPolicyViolated = false;
  #warnsOfPending = false;
  #diagnostics = 0;
  #outputs: EventOutputs | undefined;
  #changes: StepCounts = {};
  #summary: string | undefined;
  readonly #drift = new DriftFindings();
  readonly #refusedUrns: string[] = [];

  constructor(options: FollowOptions) {
    this.#options = options;
  }

  add(engine: EngineEvent): void {
    for (const line of engine.errorLines) {
      if (this.#errorLines.length < maxErrorLines) this.#errorLines.push(line);
    }
    this.#known = firstKnown(this.#known, engine.known);
    this.#isPolicyViolated ||= engine.isMandatoryPolicy;
    this.#warnsOfPending ||= engine.warnsOfPending;
    const { isDriftCheck, clean } = this.#options;
    const drifted = isDriftCheck ? driftedResource(engine.finished, clean) : undefined;
    if (drifted) this.#drift.add(drifted);
    if (engine.refusedUrn !== undefined) this.#refusedUrns.push(engine.refusedUrn);
    if (engine.stackOutputs) this.#outputs = this.#readOutputs(engine.stackOutputs);
    if (engine.event?.kind === "summary") {
      this.#changes = engine.event.changes;
      // Older CLIs do not report a result.
      this.#summary = engine.event.result ?? (this.#errorLines.length === 0 ? "succeeded" : "failed");
    }
  }

  /** Limits diagnostics, so that a program that prints endlessly does not fill the disk twice. */
  accepts(event: RunEvent): boolean {
    const hasText = event.kind === "diagnostic" || event.kind === "policy";
    if (hasText && this.#options.shows === "nothing") return false;
    if (event.kind !== "diagnostic") return true;
    this.#diagnostics += 1;
    return this.#diagnostics <= maxDiagnostics;
  }

  /** Without values if this agent does not know the secrets in them. */
  visible(event: RunEvent): RunEvent {
    if (this.#options.shows !== "nothing" || event.kind !== "resource" || !event.changes) return event;
    return { ...event, changes: event.changes.map(({ path, kind }) => ({ path, kind })) };
  }

  with(end: LaunchEnd, hasChanged: boolean): Followed {
    // The result of a check is not that of the update which did not start.
    const isUnstarted = this.#options.kind === "planned" && !hasChanged;
    return {
      end,
      errorLines: this.#errorLines,
      known: this.#known,
      isPolicyViolated: this.#isPolicyViolated,
      warnsOfPending: this.#warnsOfPending,
      outputs: hasChanged ? this.#outputs : undefined,
      changes: hasChanged ? this.#changes : {},
      summary: isUnstarted ? undefined : this.#summary,
      drift: this.#options.isDriftCheck ? this.#drift.among(this.#changes) : undefined,
      hasOnlyChecked: !hasChanged,
      refusedUrns: this.#refusedUrns,
    };
  }

  #readOutputs(values: Readonly<Record<string, unknown>>): EventOutputs | undefined {
    try {
      return outputsFromEvent(values, this.#options.kind === "preview");
    } catch {
      // Nested too deeply: the outputs are read from the CLI.
      return undefined;
    }
  }
}

const maxUrlChars = 2048;

/** A failure only loses the link and must not fail the run. */
async function followPermalink(launched: Launched, options: FollowOptions): Promise<void> {
  try {
    await awaitPermalink(launched, options);
  } catch (error) {
    options.log.warn("cannot read the Pulumi Cloud link", { run: options.folder.runId, error: errorMessage(error) });
  }
}

async function awaitPermalink(launched: Launched, options: FollowOptions): Promise<void> {
  const { folder, launch, events, pollMs, clean } = options;
  for (;;) {
    const isOver = launched.over.aborted;
    if (events.progress.permalink !== undefined) return;
    const url = await findPermalink(folder, launch);
    if (url !== undefined) {
      await events.append({ kind: "permalink", url: truncate(clean(url), maxUrlChars) });
      return;
    }
    if (isOver) return;
    await pause(pollMs * 5, launched.over);
  }
}

/** A failure only means that a later agent cannot identify this command's lock. It must not fail the run. */
async function followLock(launched: Launched, options: FollowOptions): Promise<void> {
  const { folder, launch, onLock, pollMs, kind } = options;
  if (!onLock || kind === "preview" || kind === "check") return;
  try {
    for (;;) {
      const isOver = launched.over.aborted;
      if (showsLock(await readHead(folder, launch), kind)) return await onLock();
      if (isOver) return;
      await pause(pollMs, launched.over);
    }
  } catch (error) {
    options.log.warn("cannot confirm the lock", { run: folder.runId, error: errorMessage(error) });
  }
}
