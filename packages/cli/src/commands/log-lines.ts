/**
 * The lines of a workspace pod's log: output of Pulumi, and messages of the agent and events of runs, which start with a
 * brace. Events are not shown: they repeat what Pulumi prints. Pure.
 */
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
    const { raw } = this.#options;
    const message = agentMessage(line);
    const isEvent = message?.feed !== undefined;
    this.#enter(message);
    this.#noticeCut(message);
    const isShown = this.#isInRun && (raw || !isEvent);
    if (this.#isOfRun(message) && message?.message === "run finished") this.#isEnded = true;
    if (!isShown) return "";
    return `${raw ? line : message ? agentText(message) : printable(line)}\n`;
  }

  /** Log rotation may have removed the beginning of the run: then it starts with an event. */
  #enter(message: AgentMessage | undefined): void {
    const isStart = message?.message === "run started" || message?.feed !== undefined;
    if (isStart && this.#isOfRun(message)) this.#isInRun = true;
  }

  #noticeCut({ message, feed, seq, run }: AgentMessage = {}): void {
    if (run === undefined || (this.#options.run !== undefined && this.#options.run !== run)) return;
    const isFirst = message === "run started" || seq === 1;
    const isLater = feed !== undefined || message === "run finished";
    if (isLater && !isFirst && !this.#begun.has(run)) this.#isCut = true;
    this.#begun.add(run);
  }

  #isOfRun(message: AgentMessage | undefined): boolean {
    const { run } = this.#options;
    return run !== undefined && message?.run === run;
  }
}

interface AgentMessage {
  readonly time?: string;
  readonly level?: string;
  readonly message?: string;
  readonly run?: string;
  /** Of an event: the version of its format. */
  readonly feed?: unknown;
  /** Of an event: its number in the run. */
  readonly seq?: unknown;
  readonly [field: string]: unknown;
}

/** Undefined for a line of Pulumi: if one starts with a brace, the agent puts a space before it. */
function agentMessage(line: string): AgentMessage | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as AgentMessage;
  } catch {
    return undefined;
  }
}

const ownFields: ReadonlySet<string> = new Set(["time", "level", "message", "run"]);

function agentText(fields: AgentMessage): string {
  const { time, level, message } = fields;
  const rest = Object.entries(fields).filter(([name]) => !ownFields.has(name));
  const more = rest.map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const severity = level === undefined || level === "info" ? "" : `${level}: `;
  return printable(`[${[time, `${severity}${message ?? ""}`, ...more].filter(Boolean).join(" ")}]`);
}
