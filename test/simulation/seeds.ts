/** Runs seeds in several processes. */
import { availableParallelism } from "node:os";
import { join } from "node:path";

import { repositoryRoot } from "../runner/suites.ts";
import type { SeedReport } from "./run.ts";

/** The story only if an invariant was violated. */
export type WorkerReport = Omit<SeedReport, "log" | "story"> & Partial<Pick<SeedReport, "story">>;

interface SeedRange {
  readonly first: number;
  readonly last: number;
  /** Of each process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly preload?: string;
  /** How many processes. */
  readonly width?: number;
  /** Ends it early. */
  readonly signal?: AbortSignal;
}

/** In the order in which they end. Processes that are left end with the loop. */
export async function* runSeeds(range: SeedRange): AsyncGenerator<WorkerReport> {
  const { first, last, env = {}, preload, signal } = range;
  const { width: wanted = Number(process.env["TEST_WIDTH"] || availableParallelism()) } = range;
  const width = Math.min(wanted, last - first + 1);
  const queue: WorkerReport[] = [];
  const ended: number[] = [];
  let wake = (): void => undefined;
  const children = Array.from({ length: width }, (_, index) => {
    const worker = [join(import.meta.dir, "worker.ts"), String(first + index), String(last), String(width)];
    const flags = preload === undefined ? [] : [`--preload=${preload}`];
    return Bun.spawn([process.execPath, ...flags, ...worker], {
      cwd: repositoryRoot,
      env: { ...process.env, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
  });
  const read = async ({ stdout, exited }: (typeof children)[number]): Promise<void> => {
    let rest = "";
    for await (const text of stdout.pipeThrough(new TextDecoderStream())) {
      const lines = `${rest}${text}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) queue.push(JSON.parse(line) as WorkerReport);
      wake();
    }
    const code = await exited;
    ended.push(code);
    wake();
  };
  const reading = children.map(read);
  signal?.addEventListener("abort", () => wake(), { once: true });
  try {
    while (ended.length < width || queue.length > 0) {
      const report = queue.shift();
      if (report) yield report;
      else if (signal?.aborted) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
    await Promise.all(reading);
    if (ended.some((code) => code !== 0)) throw new Error(`a process that ran seeds ended with ${Math.max(...ended)}`);
  } finally {
    for (const child of children) child.kill();
  }
}
