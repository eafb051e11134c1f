/** Progress output: one line per step on a terminal, otherwise a line every half minute. */
const quietIntervalMs = 30_000;
const terminalIntervalMs = 500;

export interface Step {
  /** Replaces the detail that is shown while the step runs. */
  report(detail: string): void;
}

export async function step<T>(title: string, work: (step: Step) => Promise<T>): Promise<T> {
  const started = performance.now();
  const terminal = process.stderr.isTTY;
  let detail = "";
  const line = (): string => `  ${title} … ${seconds(started)}${detail && `, ${detail}`}`;
  const timer = setInterval(
    () => process.stderr.write(terminal ? `\r\x1b[K${line()}` : `${line()}\n`),
    terminal ? terminalIntervalMs : quietIntervalMs,
  );
  const end = (mark: string): void => {
    clearInterval(timer);
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

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
