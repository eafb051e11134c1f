/** Progress output: one line per step on a terminal, otherwise a line every half minute. */
const quietIntervalMs = 30_000;
const terminalIntervalMs = 500;

/** The lines of the steps that run, which share one line on a terminal. */
const running = new Set<() => string>();

export interface Step {
  /** Replaces the detail that is shown while the step runs. */
  report(detail: string): void;
}

export async function step<T>(title: string, work: (step: Step) => Promise<T>): Promise<T> {
  const started = performance.now();
  const terminal = process.stderr.isTTY;
  let detail = "";
  const line = (): string => `  ${title} … ${seconds(started)}${detail && `, ${detail}`}`;
  running.add(line);
  const timer = setInterval(
    () => process.stderr.write(terminal ? `\r\x1b[K${terminalLine()}` : `${line()}\n`),
    terminal ? terminalIntervalMs : quietIntervalMs,
  );
  const end = (mark: string): void => {
    clearInterval(timer);
    running.delete(line);
    process.stderr.write(`${terminal ? "\r\x1b[K" : ""}${mark} ${title} (${seconds(started)})\n`);
  };
  try {
    const result = await work({ report: (text) => (detail = text) });
    end("✓");
    return result;
  } catch (error) {
    end("✗");
    throw error;
  }
}

/** A longer line would wrap, and the next one would not replace it. */
function terminalLine(): string {
  const text = Array.from(running, (line) => line()).join(";");
  return text.slice(0, (process.stderr.columns || 80) - 1);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
