/** Times and durations for people. Pure. */

const units = [
  ["d", 86_400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
] as const;

/** For example `3d4h`, `12m`, `45s`: the largest unit, and the next one if the first is small. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const at = units.findIndex(([, size]) => seconds >= size);
  const [unit, size] = units[at] ?? (["s", 1] as const);
  const count = Math.floor(seconds / size);
  const [nextUnit, nextSize] = units[at + 1] ?? (["s", 1] as const);
  const rest = Math.floor((seconds - count * size) / nextSize);
  return count < 10 && size > 1 && rest > 0 ? `${count}${unit}${rest}${nextUnit}` : `${count}${unit}`;
}

/** `12m ago`, `in 3h`, or an empty string if there is no time. */
export function relative(time: string | undefined, now: number): string {
  const ms = Date.parse(time ?? "");
  if (Number.isNaN(ms)) return "";
  return ms <= now ? `${durationText(now - ms)} ago` : `in ${durationText(ms - now)}`;
}

/** The time and how far away it is: `2030-01-01T12:00:00Z (in 3h)`. */
export function absolute(time: string | undefined, now: number): string {
  return time === undefined || relative(time, now) === "" ? "" : `${time} (${relative(time, now)})`;
}

export function elapsed(start: string | undefined, end: string | undefined): string {
  const ms = Date.parse(end ?? "") - Date.parse(start ?? "");
  return Number.isNaN(ms) ? "" : durationText(ms);
}
