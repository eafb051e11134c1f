/** Runs a worker, and reports the input that hangs or kills it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { readLines } from "@pko/rpc";

import { encodeInput } from "./corpus.ts";
import { createInputFile, readCurrentInput } from "./current-input.ts";

export interface Task {
  readonly targets: readonly string[];
  readonly seed: number;
  /** For each target; by default it tries as many inputs as it wants. */
  readonly seconds?: number;
  /** More inputs to start from, by target. */
  readonly inputs?: Readonly<Record<string, readonly string[]>>;
}

export interface Job extends Task {
  readonly inputFile: string;
}

/** Inputs are in the form of the corpus. */
export interface Result {
  readonly target: string;
  readonly rounds: number;
  readonly branches: number;
  readonly cpuSeconds: number;
  /** By the property that does not hold. */
  readonly findings: Readonly<Record<string, string>>;
  readonly reaching: readonly string[];
}

export type WorkerLine =
  { readonly kind: "started"; readonly target: string } | { readonly kind: "finished"; readonly result: Result };

/** Every input takes milliseconds. */
const maxSilenceMs = 120_000;
const pollMs = 2000;

export async function supervise(task: Task, onResult: (result: Result) => void = () => undefined): Promise<Result[]> {
  const folder = mkdtempSync(join(tmpdir(), "fuzz-"));
  const inputFile = join(folder, "input");
  createInputFile(inputFile);
  const job: Job = { ...task, inputFile };
  const program = ["--preload", join(import.meta.dir, "coverage.ts"), join(import.meta.dir, "worker.ts")];
  const worker = Bun.spawn([process.execPath, ...program, JSON.stringify(job)], {
    env: { ...process.env, TMPDIR: folder },
    stdout: "pipe",
    stderr: "pipe",
  });
  const silence = killIfSilent(worker, inputFile);
  const stderr = new Response(worker.stderr).text();
  const results: Result[] = [];
  const add = (result: Result): void => {
    results.push(result);
    onResult(result);
  };
  let current = "no target";
  try {
    for await (const text of readLines(worker.stdout, maxLineBytes)) {
      const line = JSON.parse(text) as WorkerLine;
      if (line.kind === "started") current = line.target;
      else add(line.result);
    }
    const code = await worker.exited;
    if (code !== 0) {
      const problem = silence.isKilled()
        ? "hangs"
        : `ends the process (${code}): ${(await stderr).trim().slice(-1000)}`;
      add(died(current, problem, readCurrentInput(inputFile).input));
    }
    return results;
  } finally {
    silence.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const maxLineBytes = 64 * 1024 * 1024;

/** Also ends a worker that is busy: it would not handle another signal. */
function killIfSilent(worker: Bun.Subprocess, inputFile: string): { isKilled(): boolean; stop(): void } {
  let [last, since, isKilled] = [-1, performance.now(), false];
  const timer = setInterval(() => {
    const { count } = readCurrentInput(inputFile);
    if (count !== last) [last, since] = [count, performance.now()];
    if (performance.now() - since < maxSilenceMs) return;
    isKilled = true;
    worker.kill("SIGKILL");
  }, pollMs);
  return { isKilled: () => isKilled, stop: () => clearInterval(timer) };
}

function died(target: string, problem: string, input: Uint8Array): Result {
  return { target, rounds: 0, branches: 0, cpuSeconds: 0, findings: { [problem]: encodeInput(input) }, reaching: [] };
}
