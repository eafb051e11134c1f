/** Follows one command of a run: converts its engine events to the run's, and collects what explains its end. */
import { type RunEvent, type StepCounts } from "@pko/records";
import { pause, type Drift } from "@pko/rpc";
import { parseEngineEvent, type Cleaner, type EngineEvent } from "../pulumi/engine-events.ts";
import { DriftFindings, driftedResource } from "../pulumi/drift.ts";
import { firstKnown, type KnownError } from "../pulumi/explain.ts";
import { isFieldWarning } from "../pulumi/field-warning.ts";
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
  /** Whether the program is that of a Program object. */
  readonly isProgram: boolean;
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
  const link = followPermalink(launched, options);
  const lock = followLock(launched, options);
  const relayed = relayOutput(launched, {
    files: relayedFiles(options),
    pollMs,
    clean: options.clean,
    log: options.log,
    ...(options.kind === "planned" && { isLast: hasPlanValues }),
  });
  const command = new CommandEvents(options);
  const { over } = launched;
  const path = folder.engineLog(options.launch);
  for await (const line of tailRewritten({ path, maxLineBytes: maxEventBytes, pollMs, over })) {
    switch (line.kind) {
      case "line":
        await command.add(line.text);
        break;
      case "rewritten":
        command.restart();
        break;
      case "tooLong": {
        const message = `dropped an event of ${line.bytes} bytes, because it is too large`;
        await events.append({ kind: "notice", message });
      }
    }
  }
  const end = await launched.ended;
  // Kill plugins that outlived the CLI.
  launched.kill();
  await Promise.all([link, lock, relayed]);
  if (options.kind === "planned") await cutOutput(options);
  return await command.end(end);
}

/** The engine events of a command: the run's events are appended to its log, and the findings explain its end. */
class CommandEvents {
  readonly #options: FollowOptions;
  /** The last event that an earlier agent process has appended. */
  readonly #origin: number;
  #findings: Findings;
  #gate: EventGate;
  #times = new StepTimes();

  constructor(options: FollowOptions) {
    const { events, launch, kind } = options;
    this.#options = options;
    this.#origin = events.origin?.launch === launch ? events.origin.sequence : -1;
    this.#findings = new Findings(options);
    this.#gate = new EventGate(kind);
  }

  /** The check has succeeded. The CLI writes the events of the update to the same file. */
  restart(): void {
    this.#findings = new Findings(this.#options);
    this.#gate = new EventGate(this.#options.kind);
    this.#times = new StepTimes();
  }

  async add(line: string): Promise<void> {
    const parsed = parseEngineEvent(line, this.#options.clean);
    if (!parsed || this.#isUnwanted(parsed)) return;
    const event = this.#times.add(parsed, performance.now());
    const engine = event ? { ...parsed, event: this.#findings.visible(event) } : parsed;
    this.#findings.add(engine);
    await this.#append(this.#gate.pass(engine));
  }

  #isUnwanted({ event }: EngineEvent): boolean {
    return this.#options.isProgram && event?.kind === "diagnostic" && isFieldWarning(event.message);
  }

  async end(end: LaunchEnd): Promise<Followed> {
    const followed = this.#findings.with(end, this.#gate.isOpen);
    // What a failed check reported explains its failure.
    if (!isSuccess(followed)) await this.#append(this.#gate.held());
    return followed;
  }

  async #append(passed: ReturnType<EventGate["held"]>): Promise<void> {
    const { events, launch } = this.#options;
    for (const { event, sequence } of passed) {
      if (sequence > this.#origin && this.#findings.accepts(event)) await events.append(event, { launch, sequence });
    }
  }
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
    options.log.warn("cannot read the Pulumi Cloud link", { run: options.folder.runId, error });
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
    options.log.warn("cannot confirm the lock", { run: folder.runId, error });
  }
}
