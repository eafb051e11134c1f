/** Short commands (git, the CLI's lesser verbs): run to their end with bounded output, killed whole when given up. */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { hasCode } from "./files.ts";
import { claim } from "./orphans.ts";
import { signalSession } from "./processes.ts";
import { joined, type Clean } from "./clean-text.ts";
import type { Excerpt, Redactor } from "./redact.ts";

interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** The most of each of its outputs that is kept: the beginning of standard output, the end of standard error. */
  readonly maxOutputBytes?: number;
}

interface Exited {
  readonly kind: "exited";
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Which outputs were longer than what is kept of them. */
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
  const stdout = new Kept(max, "head");
  const stderr = new Kept(Math.min(max, 256 * 1024), "tail");
  // A session of its own: whatever it starts ends with it.
  const child = claim(
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
  const givenUp = giveUp(command, () => child.pid !== undefined && signalSession(child.pid, "SIGKILL"));
  try {
    const code = await Promise.race([ended, givenUp.reason]);
    if (code === "missing" || code === "aborted") return { kind: code };
    if (code === "timedOut") {
      return { kind: "timedOut", stderr: stderr.text(), ...(stderr.isCut && { cut: { stderr: true } }) };
    }
    const isCut = stdout.isCut || stderr.isCut;
    const cut = isCut && { cut: { stdout: stdout.isCut, stderr: stderr.isCut } };
    return { kind: "exited", code, stdout: stdout.text(), stderr: stderr.text(), ...cut };
  } finally {
    givenUp.dispose();
  }
}

interface GivenUp {
  readonly reason: Promise<"timedOut" | "aborted">;
  dispose(): void;
}

function giveUp(command: Command, kill: () => void): GivenUp {
  const { promise, resolve } = Promise.withResolvers<"timedOut" | "aborted">();
  const end = (reason: "timedOut" | "aborted") => (): void => {
    kill();
    resolve(reason);
  };
  const timer = setTimeout(end("timedOut"), command.timeoutMs);
  const onAbort = end("aborted");
  command.signal?.addEventListener("abort", onAbort, { once: true });
  return {
    reason: promise,
    dispose() {
      clearTimeout(timer);
      command.signal?.removeEventListener("abort", onAbort);
    },
  };
}

class Kept {
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

/** What it printed, to be shown: standard output before standard error. */
export function cleanOutput(end: Exited | TimedOut, redactor: Redactor): Clean {
  const stderr = redactor.clean(excerptOfErrors(end));
  if (end.kind === "timedOut") return stderr;
  return joined([redactor.clean({ text: end.stdout, isCutAtEnd: end.cut?.stdout ?? false }), stderr], "\n");
}

export function excerptOfErrors({ stderr, cut }: Exited | TimedOut): Excerpt {
  return { text: stderr, isCutAtStart: cut?.stderr ?? false };
}
