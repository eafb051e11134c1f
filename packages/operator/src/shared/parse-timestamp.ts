/** Milliseconds since the epoch; undefined if there is no text, or it is not a timestamp. */
export function parseTimestamp(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}
