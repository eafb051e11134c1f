/** The schedules of update windows: cron expressions as in a CronJob, in a time zone (docs/adr/0021-update-windows.md). */
import { Cron } from "croner";

/** Five fields of numbers, names of three letters, `*`, `?`, lists, ranges and steps; or a macro. Also evaluated by the API server. */
export const schedulePattern =
  "^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|(([0-9*?,/-]|[A-Za-z]{3})+ +){4}([0-9*?,/-]|[A-Za-z]{3})+)$";

export interface Schedule {
  /** The first opening after this time; undefined if there is none. */
  next(after: number): number | undefined;
}

/** Throws if the schedule or the time zone is invalid. */
export function scheduleOf({ schedule, timeZone }: { schedule: string; timeZone: string }): Schedule {
  // CronJobs accept `5/15`, too.
  const cron = new Cron(schedule, { paused: true, timezone: timeZone, mode: "5-part", sloppyRanges: true });
  return {
    // The library counts in whole seconds.
    next: (after) => cron.nextRun(new Date(Math.floor(after / 1000) * 1000))?.getTime(),
  };
}

export const hasSchedulePattern = (schedule: string): boolean => new RegExp(schedulePattern).test(schedule);

/** Undefined if it is valid; otherwise the library's explanation. */
export function scheduleProblem(schedule: string): string | undefined {
  try {
    scheduleOf({ schedule, timeZone: "UTC" });
    return undefined;
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).replace(/^CronPattern: |\.$/g, "");
  }
}

/** Offsets such as +01:00 are not IANA names, and know no daylight saving time. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return Intl.DateTimeFormat("en", { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

/** Any time: a schedule that opens after it opens again at most eight years later. */
const someTime = Date.UTC(2024, 0, 1);

/** Whether there is any opening: there is none on February 30. */
export const everOpens = (schedule: string): boolean =>
  scheduleOf({ schedule, timeZone: "UTC" }).next(someTime) !== undefined;
