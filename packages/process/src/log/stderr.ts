/** Writes to the standard error of the process, without losing lines. */
import { writeSync } from "node:fs";

/** Not that of `process.stderr`: as soon as the runtime creates that stream, a pipe no longer blocks. */
const stderr = 2;
const pauseMs = 1;

/**
 * Synchronous, so that the last line before the process ends is not lost. Waits for a reader that is slower than the
 * process: a pipe holds 64 kB, and the rest of a burst would be lost.
 */
export function writeStderr(text: string): void {
  const bytes = Buffer.from(text);
  for (let written = 0; written < bytes.length;) {
    const count = writeSome(bytes, written);
    if (count === undefined) Bun.sleepSync(pauseMs);
    else written += count;
  }
}

/** Undefined if the pipe is full and does not block. */
function writeSome(bytes: Buffer, from: number): number | undefined {
  try {
    return writeSync(stderr, bytes, from);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EAGAIN") return undefined;
    throw error;
  }
}
