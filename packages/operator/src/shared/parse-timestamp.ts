/** Milliseconds since the epoch; undefined if there is no text, or it is not a timestamp. */
export function parseTimestamp(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** As `parseTimestamp`, but only a complete date and time with a zone: what a person typed must not be guessed. */
export const parseRfc3339 = (text: string): number | undefined =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) ? parseTimestamp(text) : undefined;
