/** Milliseconds since the epoch; undefined if there is no text, or it is not a timestamp. */
export function parseTimestamp(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Clocks may differ by this. What waits for a recorded time then waits longer, rather than not at all. */
export const clockSkewMs = 10 * 60_000;

/**
 * As `parseTimestamp`, for the time at which something happened. One that is further in the future was recorded while a clock was wrong:
 * nothing may wait for it, so it counts as unknown.
 */
export function parsePastTimestamp(text: string | undefined, now: number): number | undefined {
  const ms = parseTimestamp(text);
  return ms === undefined || ms - now > clockSkewMs ? undefined : ms;
}

/** As `parseTimestamp`, but only a complete date and time with a zone: what a person typed must not be guessed. */
export const parseRfc3339 = (text: string): number | undefined =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) ? parseTimestamp(text) : undefined;
