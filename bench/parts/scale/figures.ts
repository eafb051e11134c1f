/** What the benchmark of scale measures. */
import type { Usage } from "../usage.ts";
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
  /** Without Stacks, with Stacks, and twice with their Updates; without Updates, twice with Stacks. */
  readonly phases: readonly Phase[];
  readonly window: {
    readonly seconds: number;
    readonly usage: Usage;
    readonly cpuMs: number;
    /** Of the operator. */
    readonly requests: number;
    /** Of those, to renew the Lease. */
    readonly renewals: number;
    /** Except those to Leases. */
    readonly writes: RequestCounts;
    /** All requests, also of the API server itself. */
    readonly served: RequestCounts;
  };
  /** Stacks that were changed together, and when the operator had written the status of the last one. */
  readonly changes?: { readonly count: number; readonly observedMs: number; readonly cpuMs: number } | undefined;
}

export interface MemoryPerObject {
  readonly stackKb: number;
  /** Absent without Updates. */
  readonly updateKb?: number;
}

/** From the differences between the phases, without pages of files. Pure. */
export function memoryPerObject(phases: readonly Phase[]): MemoryPerObject | undefined {
  const [none, stacks, last] = [phases[0], phases[1], phases.at(-1)];
  if (!none || !stacks || !last || stacks.stacks === 0) return undefined;
  const kbBetween = (from: Phase, to: Phase): number => (to.usage.anonymousMb - from.usage.anonymousMb) * 1000;
  const stackKb = kbBetween(none, stacks) / stacks.stacks;
  return last.updates === 0 ? { stackKb } : { stackKb, updateKb: kbBetween(stacks, last) / last.updates };
}
