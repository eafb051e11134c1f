/** Following one command of a run: its engine events become the run's, and add up to what is known of its end. */
import { assertNever, errorMessage, type RunEvent, type StepCounts } from "@pko/rpc";
import { parseEngineEvent, type Cleaner, type EngineEvent } from "../pulumi/engine-events.ts";
import { firstKnown, type Known } from "../pulumi/explain.ts";
import { outputsFromEvent, type EventOutputs } from "../pulumi/outputs.ts";
import { cut, type Clean } from "../system/clean-text.ts";
import type { Log } from "../system/log.ts";
import { pause } from "../system/pause.ts";
import type { EventLog } from "./event-log.ts";
import { showsLock } from "../pulumi/locks.ts";
import { findPermalink, readHead, type Launched, type LaunchEnd } from "./launcher.ts";
import { relayOutput } from "./relay.ts";
import type { RunFolder } from "./run-folder.ts";
import { tailLines } from "./tail.ts";

interface FollowOptions {
  readonly folder: RunFolder;
  readonly launch: number;
  readonly events: EventLog;
  readonly isPreview: boolean;
  readonly pollMs: number;
  readonly clean: Cleaner;
  readonly log: Log;
  /** Called once when the command is known to hold the stack's lock; absent if that is known already. */
  readonly onLock?: () => Promise<void>;
  readonly shows: Shows;
}

/**
 * How much of what the CLI prints may be shown: everything; not standard error, because the verbose log in it has
 * credentials that nobody knows; or nothing, because this agent does not know the secrets to mask.
 */
export type Shows = "everything" | "output" | "nothing";

/** What a command left behind. */
export interface Followed {
  readonly end: LaunchEnd;
  readonly errorLines: readonly Clean[];
  /** What the errors are known to mean. */
  readonly known: Known | undefined;
  readonly isPolicyViolated: boolean;
  readonly outputs: EventOutputs | undefined;
  readonly changes: StepCounts;
  /** The engine's own verdict, where it lived to give one. */
  readonly summary: string | undefined;
}

/** A larger event is left out; the outputs it may have held are asked of the CLI. */
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
  });
  const findings = new Findings(options);
  const { over } = launched;
  for await (const line of tailLines({
    path: folder.engineLog(options.launch),
    maxLineBytes: maxEventBytes,
    pollMs,
    over,
  })) {
    if (line.kind === "tooLong") {
      await events.append({ kind: "notice", message: `an event of ${line.bytes} bytes is left out` });
      continue;
    }
    const engine = parseEngineEvent(line.text, options.clean);
    if (!engine) continue;
    findings.add(engine);
    // What an earlier agent has told is not told again.
    if (engine.event && engine.sequence > origin && findings.isToTell(engine.event)) {
      const from = { launch: options.launch, sequence: engine.sequence };
      await events.append(engine.event, from);
    }
  }
  const end = await launched.ended;
  // Plugins that outlived the CLI.
  launched.kill();
  await Promise.all([link, lock, relayed]);
  return findings.with(end);
}

function relayedFiles({ shows, folder, launch }: FollowOptions): string[] {
  switch (shows) {
    case "everything":
      return [folder.stdout(launch), folder.stderr(launch)];
    case "output":
      return [folder.stdout(launch)];
    case "nothing":
      return [];
    default:
      return assertNever(shows);
  }
}

export function isSuccess({ end, summary }: Followed): boolean {
  return end.kind === "exited" ? end.code === 0 : end.kind === "unseen" && summary === "succeeded";
}

class Findings {
  readonly #options: FollowOptions;
  readonly #errorLines: Clean[] = [];
  #known: Known | undefined;
  #isPolicyViolated = false;
  #diagnostics = 0;
  #outputs: EventOutputs | undefined;
  #changes: StepCounts = {};
  #summary: string | undefined;

  constructor(options: FollowOptions) {
    this.#options = options;
  }

  add(engine: EngineEvent): void {
    for (const line of engine.errorLines) {
      if (this.#errorLines.length < maxErrorLines) this.#errorLines.push(line);
    }
    this.#known = firstKnown(this.#known, engine.known);
    this.#isPolicyViolated ||= engine.isMandatoryPolicy;
    if (engine.stackOutputs) this.#outputs = this.#readOutputs(engine.stackOutputs);
    if (engine.event?.kind === "summary") {
      this.#changes = engine.event.changes;
      // An older CLI gives no verdict of its own.
      this.#summary = engine.event.result ?? (this.#errorLines.length === 0 ? "succeeded" : "failed");
    }
  }

  /** A program that prints without end is not let to fill the disk twice: all of it is in its log. */
  isToTell(event: RunEvent): boolean {
    const hasText = event.kind === "diagnostic" || event.kind === "policy";
    if (hasText && this.#options.shows === "nothing") return false;
    if (event.kind !== "diagnostic") return true;
    this.#diagnostics += 1;
    return this.#diagnostics <= maxDiagnostics;
  }

  with(end: LaunchEnd): Followed {
    return {
      end,
      errorLines: this.#errorLines,
      known: this.#known,
      isPolicyViolated: this.#isPolicyViolated,
      outputs: this.#outputs,
      changes: this.#changes,
      summary: this.#summary,
    };
  }

  #readOutputs(values: Readonly<Record<string, unknown>>): EventOutputs | undefined {
    try {
      return outputsFromEvent(values, this.#options.isPreview);
    } catch {
      // Nested deeper than can be followed: the CLI is asked.
      return undefined;
    }
  }
}

const maxUrlChars = 2048;

/** Without it a reader misses a link: nothing that a run should break off for. */
async function followPermalink(launched: Launched, options: FollowOptions): Promise<void> {
  try {
    await awaitPermalink(launched, options);
  } catch (error) {
    options.log.warn("page not found", { run: options.folder.runId, error: errorMessage(error) });
  }
}

async function awaitPermalink(launched: Launched, options: FollowOptions): Promise<void> {
  const { folder, launch, events, pollMs, clean } = options;
  for (;;) {
    const isOver = launched.over.aborted;
    if (events.progress.permalink !== undefined) return;
    const url = await findPermalink(folder, launch);
    if (url !== undefined) {
      await events.append({ kind: "permalink", url: cut(clean(url), maxUrlChars) });
      return;
    }
    if (isOver) return;
    await pause(pollMs * 5, launched.over);
  }
}

/** Without it the lock that a killed command leaves is not known to be its own: nothing that a run should fail for. */
async function followLock(launched: Launched, options: FollowOptions): Promise<void> {
  const { folder, launch, onLock, pollMs, isPreview } = options;
  if (!onLock || isPreview) return;
  try {
    for (;;) {
      const isOver = launched.over.aborted;
      if (showsLock(await readHead(folder, launch))) return await onLock();
      if (isOver) return;
      await pause(pollMs, launched.over);
    }
  } catch (error) {
    options.log.warn("lock not confirmed", { run: folder.runId, error: errorMessage(error) });
  }
}
