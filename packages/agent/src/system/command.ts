/** Runs short commands (git, CLI commands other than runs) with limited output; an abort kills all their processes. */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { hasCode } from "./files.ts";
import { trackChild } from "./orphans.ts";
import { killSession } from "./processes.ts";
import { joinClean, type Clean } from "./clean-text.ts";
import type { Excerpt, Redactor } from "./redact.ts";

interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** The limit for each output: the start of standard output and the end of standard error are kept. */
  readonly maxOutputBytes?: number;
}

interface Exited {
  readonly kind: "exited";
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Which outputs exceeded the limit. */
  readonly cut?: { readonly stdout: boolean; readonly stderr: boolean };
}

interface TimedOut {
  readonly kind: "timedOut";
  readonly stderr: string;
  readonly cut?: { readonly stderr: boolean };
}

export type CommandEnd = Exited | TimedOut | { readonly kind: "missing" } | { readonly kind: "aborted" };

const defaultMaxOutput = 8 * 1024 * 1024;

export async function runCommand(command: Command): Promise<CommandEnd> {
  if (command.signal?.aborted) return { kind: "aborted" };
  const max = command.maxOutputBytes ?? defaultMaxOutput;
  const stdout = new OutputBuffer(max, "head");
  const stderr = new OutputBuffer(Math.min(max, 256 * 1024), "tail");
  // A separate session, so that all processes that it starts can be killed.
  const child = trackChild(
    spawn(command.file, command.args, {
      cwd: command.cwd,
      env: command.env,
      detached: true,
      stdio: [command.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    }),
  );
  child.stdout?.on("data", (data: Buffer) => stdout.add(data));
  child.stderr?.on("data", (data: Buffer) => stderr.add(data));
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(command.input);
  const ended = new Promise<number | "missing">((resolve, reject) => {
    child.on("error", (error) => (hasCode(error, "ENOENT", "EACCES") ? resolve("missing") : reject(error)));
    child.on("close", (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
  const interruption = watchForInterruption(command, () => child.pid !== undefined && killSession(child.pid));
  try {
    const code = await Promise.race([ended, interruption.reason]);
    if (code === "missing" || code === "aborted") return { kind: code };
    if (code === "timedOut") {
      return { kind: "timedOut", stderr: stderr.text(), ...(stderr.isCut && { cut: { stderr: true } }) };
    }
    const isCut = stdout.isCut || stderr.isCut;
    const cut = isCut && { cut: { stdout: stdout.isCut, stderr: stderr.isCut } };
    return { kind: "exited", code, stdout: stdout.text(), stderr: stderr.text(), ...cut };
  } finally {
    interruption.dispose();
  }
}

interface Interruption {
  readonly reason: Promise<"timedOut" | "aborted">;
  dispose(): void;
}

function watchForInterruption(command: Command, kill: () => void): Interruption {
  const { promise, resolve } = Promise.withResolvers<"timedOut" | "aborted">();
  const interrupt = (reason: "timedOut" | "aborted") => (): void => {
    kill();
    resolve(reason);
  };
  const timer = setTimeout(interrupt("timedOut"), command.timeoutMs);
  const onAbort = interrupt("aborted");
  command.signal?.addEventListener("abort", onAbort, { once: true });
  return {
    reason: promise,
    dispose() {
      clearTimeout(timer);
      command.signal?.removeEventListener("abort", onAbort);
    },
  };
}

class OutputBuffer {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #isCut = false;
  readonly #max: number;
  readonly #end: "head" | "tail";

  constructor(max: number, end: "head" | "tail") {
    this.#max = max;
    this.#end = end;
  }

  add(data: Buffer): void {
    this.#isCut ||= this.#bytes + data.length > this.#max;
    if (this.#end === "head" && this.#bytes >= this.#max) return;
    this.#chunks.push(data);
    this.#bytes += data.length;
    while (this.#end === "tail" && this.#bytes - (this.#chunks[0]?.length ?? 0) >= this.#max) {
      this.#bytes -= this.#chunks.shift()?.length ?? 0;
    }
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  text(): string {
    const all = Buffer.concat(this.#chunks);
    const kept = this.#end === "head" ? all.subarray(0, this.#max) : all.subarray(-this.#max);
    return new TextDecoder().decode(kept);
  }
}

/** The command's output with secrets masked: standard output before standard error. */
export function cleanOutput(end: Exited | TimedOut, redactor: Redactor): Clean {
  const stderr = redactor.clean(stderrExcerpt(end));
  if (end.kind === "timedOut") return stderr;
  return joinClean([redactor.clean({ text: end.stdout, isCutAtEnd: end.cut?.stdout ?? false }), stderr], "\n");
}

export function stderrExcerpt({ stderr, cut }: Exited | TimedOut): Excerpt {
  return { text: stderr, isCutAtStart: cut?.stderr ?? false };
}
