/** The process's streams and environment, so that commands can be tested without them. */
import { createInterface } from "node:readline/promises";

export interface Io {
  out(text: string): void;
  err(text: string): void;
  /** In characters; 80 if standard output is not a terminal. */
  readonly width: number;
  /** Of the terminal, in lines. */
  readonly height: number;
  /** Whether standard output is a terminal, in which text can be replaced. */
  readonly isTerminal: boolean;
  /** Whether standard output shows colors. */
  readonly color: boolean;
  /** Whether a person can answer questions. */
  readonly isInteractive: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  now(): number;
  /** One line from the person; undefined at the end of the input. */
  ask(question: string): Promise<string | undefined>;
}

const defaultWidth = 80;
const defaultHeight = 24;

/** `signal` aborts at Ctrl-C, when the process is terminated, and when its terminal or output is closed. */
export function processIo(signal: AbortSignal): Io {
  const { stdout, stdin, stderr, env } = process;
  const isTerminal = stdout.isTTY;
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    // Tests, and users of pagers, set COLUMNS.
    // Read each time: the window may be resized.
    get width() {
      return columnsIn(env) ?? (isTerminal ? stdout.columns : defaultWidth);
    },
    get height() {
      return isTerminal ? stdout.rows : defaultHeight;
    },
    isTerminal: isTerminal && env["TERM"] !== "dumb",
    color: usesColor(env, isTerminal),
    isInteractive: stdin.isTTY,
    env,
    signal,
    now: () => Date.now(),
    async ask(question) {
      // The question goes to standard error, so that the output of the command can be redirected.
      const lines = createInterface({ input: stdin, output: stderr });
      const ended = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
      try {
        return await Promise.race([lines.question(question, { signal }), ended]);
      } finally {
        lines.close();
      }
    },
  };
}

function columnsIn(env: Io["env"]): number | undefined {
  const columns = Number(env["COLUMNS"]);
  return Number.isInteger(columns) && columns >= 20 ? columns : undefined;
}

/** https://no-color.org: any value that is not empty disables color. */
export function usesColor(env: Io["env"], isTerminal: boolean): boolean {
  return isTerminal && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}
