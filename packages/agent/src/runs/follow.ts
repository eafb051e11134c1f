/** Following one command of a run: its engine events become the run's, and add up to what is known of its end. */
import type { RunEvent, StepCounts } from "@pko/rpc";
import { parseEngineEvent, type EngineEvent } from "../pulumi/engine-events.ts";
import { outputsFromEvent, type EventOutputs } from "../pulumi/outputs.ts";
import { pause } from "../system/pause.ts";
import type { EventLog } from "./event-log.ts";
import { findPermalink, type Launched, type LaunchEnd } from "./launcher.ts";
import type { RunFolder } from "./run-folder.ts";
import { tailLines } from "./tail.ts";

export interface FollowOptions {
  readonly folder: RunFolder;
  readonly launch: number;
  readonly events: EventLog;
  readonly isPreview: boolean;
  readonly pollMs: number;
  /** Masks secrets. */
  readonly clean: (text: string) => string;
}

/** What a command left behind. */
export interface Followed {
  readonly end: LaunchEnd;
  /** Not masked yet. */
  readonly errorLines: readonly string[];
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
    const engine = parseEngineEvent(line.text);
    if (!engine) continue;
    findings.add(engine);
    // What an earlier agent has told is not told again.
    if (engine.event && engine.sequence > origin && findings.isToTell(engine.event)) {
      const from = { launch: options.launch, sequence: engine.sequence };
      await events.append(cleaned(engine.event, options), from);
    }
  }
  const end = await launched.ended;
  // Plugins that outlived the CLI.
  launched.kill();
  await link;
  return findings.with(end);
}

export function isSuccess({ end, summary }: Followed): boolean {
  return end.kind === "exited" ? end.code === 0 : end.kind === "unseen" && summary === "succeeded";
}

class Findings {
  readonly #options: FollowOptions;
  readonly #errorLines: string[] = [];
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
    if (event.kind !== "diagnostic") return true;
    this.#diagnostics += 1;
    return this.#diagnostics <= maxDiagnostics;
  }

  with(end: LaunchEnd): Followed {
    return {
      end,
      errorLines: this.#errorLines,
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

function cleaned(event: RunEvent, { clean }: FollowOptions): RunEvent {
  return event.kind === "diagnostic" || event.kind === "policy" ? { ...event, message: clean(event.message) } : event;
}

async function followPermalink(launched: Launched, { folder, launch, events, pollMs }: FollowOptions): Promise<void> {
  for (;;) {
    const isOver = launched.over.aborted;
    const url = events.progress.permalink ?? (await findPermalink(folder, launch));
    if (url !== undefined) {
      if (url !== events.progress.permalink) await events.append({ kind: "permalink", url });
      return;
    }
    if (isOver) return;
    await pause(pollMs * 5, launched.over);
  }
}
