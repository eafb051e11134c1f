/** How busy the machine is. */
import { cpus } from "node:os";

const sampleMs = 3000;
/** A job that starts needs about half a core. */
const idleShare = 0.3;

let lastTurn: Promise<void> = Promise.resolve();

/**
 * Resolves when the machine had time for another job in the last three seconds. Callers take turns, so that each sees what the one before it
 * has started.
 */
export function whenIdle(): Promise<void> {
  lastTurn = waitAfter(lastTurn);
  return lastTurn;
}

async function waitAfter(turn: Promise<void>): Promise<void> {
  await turn;
  while ((await sampleIdleShare()) < idleShare);
}

/** The unused part of the CPU time of the next seconds. */
async function sampleIdleShare(): Promise<number> {
  const before = cpuTimes();
  await Bun.sleep(sampleMs);
  const after = cpuTimes();
  return (after.idle - before.idle) / (after.all - before.all);
}

function cpuTimes(): { readonly idle: number; readonly all: number } {
  const times = cpus().map((cpu) => cpu.times);
  const all = times.flatMap((each) => Object.values(each)).reduce((sum, ms) => sum + ms, 0);
  return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all };
}
