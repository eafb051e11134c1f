/**
 * Random update windows around the changes of daylight saving time, compared with openings that are found minute by minute.
 */
import { windowAt, type UpdateWindow } from "@pko/api";
import { seededRandom, testSeed } from "@pko/testkit";
import { describe, expect, test } from "bun:test";

const minute = 60_000;
const day = 86_400_000;

interface LocalMinute {
  readonly at: number;
  readonly date: string;
  readonly weekday: number;
  readonly minuteOfDay: number;
}

const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** Every minute from three days before to three days after, on the clocks of the time zone. */
function localMinutes(timeZone: string, middle: number): LocalMinute[] {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
  });
  return Array.from({ length: (6 * day) / minute }, (_, index) => {
    const at = middle - 3 * day + index * minute;
    const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
    return {
      at,
      date: `${parts["year"]}-${parts["month"]}-${parts["day"]}`,
      weekday: weekdays.indexOf(parts["weekday"] ?? ""),
      minuteOfDay: Number(parts["hour"]) * 60 + Number(parts["minute"]),
    };
  });
}

/** The values that a schedule accepts. */
interface Times {
  readonly text: string;
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: readonly number[];
}

/** One time a day opens every day, once: after the gap if the clocks skip it. Others follow the clocks. */
function openingsOf({ minutes, hours, days }: Times, clock: readonly LocalMinute[]): number[] {
  const isDay = ({ weekday }: LocalMinute): boolean => days.includes(weekday);
  if (minutes.length > 1 || hours.length > 1) {
    const isTime = ({ minuteOfDay }: LocalMinute): boolean =>
      hours.includes(Math.floor(minuteOfDay / 60)) && minutes.includes(minuteOfDay % 60);
    return clock.filter((each) => isDay(each) && isTime(each)).map(({ at }) => at);
  }
  const wanted = (hours[0] ?? 0) * 60 + (minutes[0] ?? 0);
  const first = new Map<string, number>();
  for (const each of clock) {
    if (isDay(each) && each.minuteOfDay >= wanted && !first.has(each.date)) first.set(each.date, each.at);
  }
  // The first day is incomplete.
  return [...first].filter(([date]) => date !== clock[0]?.date).map(([, at]) => at);
}

class Chance {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seededRandom(seed).next;
  }

  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

function randomTimes(chance: Chance): Times {
  const minutes = chance.of([
    () => ["*", upTo(60)] as const,
    () => ["*/20", [0, 20, 40]] as const,
    () => ["10,50", [10, 50]] as const,
    () => one(chance.below(60)),
    () => one(chance.of([0, 15, 30, 59])),
  ])();
  const hours = chance.of([
    () => ["*", upTo(24)] as const,
    () => ["1-3", [1, 2, 3]] as const,
    () => ["2,14", [2, 14]] as const,
    () => one(chance.below(24)),
    () => one(chance.of([0, 1, 2, 3, 23])),
    () => one(chance.of([1, 2])),
  ])();
  const days = chance.of([["*", upTo(7)] as const, ["SUN", [0]] as const, ["MON-SAT", [1, 2, 3, 4, 5, 6]] as const]);
  return { text: `${minutes[0]} ${hours[0]} * * ${days[0]}`, minutes: minutes[1], hours: hours[1], days: days[1] };
}

const one = (value: number): readonly [string, readonly number[]] => [String(value), [value]];

interface Generated extends UpdateWindow {
  readonly openings: readonly number[];
}

function randomWindow(chance: Chance, { timeZone, clock }: { timeZone: string; clock: LocalMinute[] }): Generated {
  const times = randomTimes(chance);
  const seconds = chance.of([60, 90, 1800, 3600, 3661, 7200, 86_400, 60 + chance.below(86_340)]);
  return { schedule: times.text, timeZone, durationMs: seconds * 1000, openings: openingsOf(times, clock) };
}

/** The periods in which any of the windows is open. */
function openPeriods(windows: readonly Generated[]): [start: number, end: number][] {
  const all = windows.flatMap(({ openings, durationMs }) => openings.map((at) => [at, at + durationMs] as const));
  const periods: [number, number][] = [];
  for (const [start, end] of all.toSorted((a, b) => a[0] - b[0])) {
    const previous = periods.at(-1);
    if (previous && start <= previous[1]) previous[1] = Math.max(previous[1], end);
    else periods.push([start, end]);
  }
  return periods;
}

/** `open until T` or `closed until T`; at most a day ahead. */
function expectedAt(windows: readonly Generated[], now: number): string {
  const periods = openPeriods(windows);
  const present = periods.find(([start, end]) => start <= now && now < end);
  const [opens = Infinity] = periods.find(([start]) => start > now) ?? [];
  const limit = now + day;
  return present ? `open until ${Math.min(present[1], limit)}` : `closed until ${Math.min(opens, limit)}`;
}

function stateAt(windows: readonly Generated[], now: number): string {
  const state = windowAt(windows, now);
  const limit = now + day;
  switch (state.kind) {
    case "open":
      return `open until ${Math.min(state.until, limit)}`;
    case "closed":
      return `closed until ${Math.min(state.opensAt, limit)}`;
    case "never":
      return "never";
  }
}

const zones = [
  ["Europe/Berlin", "2026-03-29T01:00Z", "2026-10-25T01:00Z"],
  ["America/New_York", "2026-03-08T07:00Z", "2026-11-01T06:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30Z", "2026-04-04T15:00Z"],
  // At midnight.
  ["America/Santiago", "2026-09-06T04:00Z", "2026-04-05T03:00Z"],
  ["UTC", "2026-03-29T01:00Z", "2026-10-25T01:00Z"],
] as const;
const rounds = 150;

const seed = testSeed("update windows");

describe.each(zones)("in %s", (timeZone, ...changes) => {
  test.each(changes)("a window is open exactly from its opening for its duration, around %s", (change) => {
    const chance = new Chance(seed);
    const middle = Date.parse(change);
    const clock = localMinutes(timeZone, middle);
    for (let round = 0; round < rounds; round++) {
      const windows = upTo(1 + chance.below(3)).map(() => randomWindow(chance, { timeZone, clock }));
      const now = middle + chance.of([0, -1, 1, chance.below(2 * day) - day, chance.below(4 * 3_600_000) - 7_200_000]);
      const situation = `${JSON.stringify(windows.map(({ schedule, durationMs }) => [schedule, durationMs]))} at ${now}`;
      expect([situation, stateAt(windows, now)]).toEqual([situation, expectedAt(windows, now)]);
    }
  });
});
