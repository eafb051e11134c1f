/** What the benchmark of scale measures. */
import type { Usage } from "./operator-process.ts";
import type { RequestCounts } from "./requests.ts";

export interface Phase {
  readonly stacks: number;
  readonly updates: number;
  /** From the start of the process until it has reconciled what was changed meanwhile. */
  readonly caughtUpMs: number;
  /** Until nothing waits for a worker. */
  readonly drainedMs: number;
  readonly startCpuMs: number;
  readonly usage: Usage;
}

export interface ScaleFigures {
  /** Without Stacks, with Stacks, and twice with their Updates. */
  readonly phases: readonly Phase[];
  readonly window: {
    readonly seconds: number;
    readonly usage: Usage;
    readonly cpuMs: number;
    readonly requests: number;
    /** Except those to Leases. */
    readonly writes: RequestCounts;
  };
}

export interface MemoryPerObject {
  readonly stackKb: number;
  readonly updateKb: number;
}

/** From the differences between the phases, without pages of files. Pure. */
export function memoryPerObject(phases: readonly Phase[]): MemoryPerObject | undefined {
  const [none, stacks, last] = [phases[0], phases[1], phases.at(-1)];
  if (!none || !stacks || !last || stacks.stacks === 0 || last.updates === 0) return undefined;
  const kbBetween = (from: Phase, to: Phase): number => (to.usage.anonymousMb - from.usage.anonymousMb) * 1000;
  return { stackKb: kbBetween(none, stacks) / stacks.stacks, updateKb: kbBetween(stacks, last) / last.updates };
}
