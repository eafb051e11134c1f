/** The time of lines, and of the end of repetitions. */
export interface LogClock {
  /** Wall clock: milliseconds since the epoch. */
  now(): number;
  monotonic(): number;
  after(ms: number, callback: () => void): () => void;
}

export const processClock: LogClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    // The time may have passed already: the runtime warns about a negative timeout, outside of the log.
    const timer = setTimeout(callback, Math.max(0, ms));
    // A process that has nothing else to do ends.
    timer.unref();
    return () => clearTimeout(timer);
  },
};
