/** Ends a process that writes with the streams of the runtime. */
import { setTimeout as sleep } from "node:timers/promises";

import { flushRepetitions } from "./log/repetition.ts";

/** A reader that takes longer may never read: the process must not wait until it is killed. */
const patienceMs = 10_000;

/**
 * Exits as soon as everything is written to standard output and standard error, or after ten seconds. An exit alone discards
 * what does not fit into a pipe, which holds 64 kB.
 *
 * For a process that must not wait for the reader of its log while it works. Others write synchronously (`log/stderr.ts`).
 */
export async function exitWhenWritten(code: number): Promise<never> {
  // A listener of the exit is too late: the streams have ended by then.
  flushRepetitions();
  await Promise.race([Promise.all([process.stdout, process.stderr].map(written)), sleep(patienceMs)]);
  return process.exit(code);
}

/** The callback of a write comes too early: when the runtime has the text. That of the end comes also if the reader is gone. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((resolve) => {
    stream.end(resolve);
  });
}
