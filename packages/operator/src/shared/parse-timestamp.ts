/** Milliseconds since the epoch; undefined for no time, and for a text that is no time. */
export function parseTimestamp(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}
