/**
 * The lines of a workspace pod's log: output of Pulumi, and messages of the agent and events of runs, which start with a
 * brace. Events are not shown: they repeat what Pulumi prints. Pure.
 */
import { parseLogLine, runFinished, runStarted, type AgentMessage, type LogLine } from "@pko/records";

import { printable } from "../output/wrap.ts";

interface Options {
  readonly raw: boolean;
  /** Only the lines of this run: the UID of an Update. */
  readonly run?: string;
}

export class LogFormatter {
  readonly #options: Options;
  #rest = "";
  #isInRun: boolean;
  #isEnded = false;
  #isCut = false;
  readonly #begun = new Set<string>();

  constructor(options: Options) {
    this.#options = options;
    this.#isInRun = options.run === undefined;
  }

  /** Whether the run is finished, so that nothing of it follows. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether log rotation has removed the beginning of a run. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** The text for a piece of the log, which may end in the middle of a line. */
  format(chunk: string): string {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.map((line) => this.#formatLine(line)).join("");
  }

  /** The text of an unfinished last line. */
  end(): string {
    const rest = this.#rest;
    this.#rest = "";
    return rest === "" ? "" : this.#formatLine(rest);
  }

  #formatLine(line: string): string {
    if (this.#isEnded) return "";
    const parsed = parseLogLine(line);
    this.#enter(parsed);
    this.#noticeCut(parsed);
    const isShown = this.#isInRun;
    if (isFinish(parsed) && this.#isOfRun(parsed)) this.#isEnded = true;
    return isShown ? this.#text(parsed, line) : "";
  }

  /** A message of the agent that cannot be read is shown only with --raw, like events. */
  #text(parsed: LogLine, line: string): string {
    if (this.#options.raw) return `${line}\n`;
    switch (parsed.kind) {
      case "event":
        return "";
      case "message":
        return parsed.message ? `${agentText(parsed.message)}\n` : "";
      case "text":
        return `${printable(line)}\n`;
    }
  }

  /** Log rotation may have removed the beginning of the run: then it starts with an event. */
  #enter(line: LogLine): void {
    if ((isStart(line) || line.kind === "event") && this.#isOfRun(line)) this.#isInRun = true;
  }

  #noticeCut(line: LogLine): void {
    const run = runOf(line);
    if (run === undefined || (this.#options.run !== undefined && this.#options.run !== run)) return;
    const isFirst = isStart(line) || (line.kind === "event" && line.event.seq === 1);
    const isLater = line.kind === "event" || isFinish(line);
    if (isLater && !isFirst && !this.#begun.has(run)) this.#isCut = true;
    this.#begun.add(run);
  }

  #isOfRun(line: LogLine): boolean {
    const { run } = this.#options;
    return run !== undefined && runOf(line) === run;
  }
}

const isStart = (line: LogLine): boolean => line.kind === "message" && line.message?.msg === runStarted;
const isFinish = (line: LogLine): boolean => line.kind === "message" && line.message?.msg === runFinished;

function runOf(line: LogLine): string | undefined {
  switch (line.kind) {
    case "event":
      return line.run;
    case "message":
      return line.message?.run;
    case "text":
      return undefined;
  }
}

/** They are the same in all lines of a pod, or of a run. */
const podKeys: ReadonlySet<string> = new Set(["logger", "namespace", "pod", "stack", "workspace", "update", "traceID"]);

function agentText({ ts, level, msg, keys }: AgentMessage): string {
  const rest = Object.entries(keys).filter(([name]) => !podKeys.has(name));
  const more = rest.map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const severity = level === "info" ? "" : `${level}: `;
  return printable(`[${[ts, `${severity}${msg}`, ...more].filter(Boolean).join(" ")}]`);
}
