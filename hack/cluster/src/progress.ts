/** Steps as a person follows them: one line a step on a terminal, a line every half minute elsewhere. */
const quietIntervalMs = 30_000;
const terminalIntervalMs = 500;

export interface Step {
  /** Replaces what is said about the step while it runs. */
  say(detail: string): void;
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
    const result = await work({ say: (text) => (detail = text) });
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
