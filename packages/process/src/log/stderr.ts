/** Writes lines to the standard error of the process. */
import { writeSync } from "node:fs";

const pauseMs = 1;
/** Some seconds. A leader that waited longer would lose its Lease, and a probe of the kubelet would fail. */
const mostPauses = 3000;

/**
 * Synchronous, so that the last line before the process ends is not lost. Waits for a reader that is slower than the process: a pipe
 * holds 64 kB, and the rest of a burst would be lost. If the reader stalls, lines are dropped until it reads again; then `lostLine`
 * reports how many.
 */
export function stderrWriter(lostLine: (lines: number) => string): (line: string) => void {
  // As soon as the runtime creates this stream, a pipe no longer blocks. The stream itself would lose what it buffers at an exit.
  const writer = new StderrWriter(process.stderr.fd, lostLine);
  return (line) => writer.write(line);
}

class StderrWriter {
  readonly #file: number;
  readonly #lostLine: (lines: number) => string;
  /** What is left of a line that was written in part. */
  #rest = Buffer.alloc(0);
  /** Since the reader stalled. */
  #lost = 0;

  constructor(file: number, lostLine: (lines: number) => string) {
    this.#file = file;
    this.#lostLine = lostLine;
  }

  write(line: string): void {
    const isStalled = this.#lost > 0 || this.#rest.length > 0;
    const pauses = isStalled ? 0 : mostPauses;
    this.#rest = this.#rest.subarray(this.#writeSome(this.#rest, pauses));
    const bytes = Buffer.from(this.#lost > 0 ? this.#lostLine(this.#lost) + line : line);
    const written = this.#rest.length > 0 ? 0 : this.#writeSome(bytes, pauses);
    if (written === 0) {
      this.#lost++;
    } else {
      this.#lost = 0;
      this.#rest = bytes.subarray(written);
    }
  }

  /** Returns how many bytes were written until the pipe was full for so many pauses in a row. */
  #writeSome(bytes: Buffer, mostPausesInRow: number): number {
    let [written, pauses] = [0, 0];
    while (written < bytes.length && pauses <= mostPausesInRow) {
      const count = this.#tryToWrite(bytes, written);
      if (count === undefined) {
        if (pauses++ < mostPausesInRow) Bun.sleepSync(pauseMs);
      } else {
        [written, pauses] = [written + count, 0];
      }
    }
    return written;
  }

  /** Undefined if the pipe is full. */
  #tryToWrite(bytes: Buffer, from: number): number | undefined {
    try {
      return writeSync(this.#file, bytes, from);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EAGAIN") return undefined;
      throw error;
    }
  }
}
