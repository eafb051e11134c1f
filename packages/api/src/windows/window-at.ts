/** Whether an update may start, and when it may next. Pure. */
import { scheduleOf, type Schedule } from "./schedule.ts";

export interface UpdateWindow {
  readonly schedule: string;
  readonly timeZone: string;
  readonly durationMs: number;
}

export type WindowState =
  /** If it is more than a day ahead: until this time at least. */
  | { readonly kind: "open"; readonly until: number }
  | { readonly kind: "closed"; readonly opensAt: number; readonly timeZone: string }
  | { readonly kind: "never" };

interface Openings extends UpdateWindow {
  readonly openings: Schedule;
}

/** A window that is always open has no end. */
const searchedMs = 86_400_000;

/** The windows are valid. A Stack without windows has no state of them. */
export function windowAt(windows: readonly UpdateWindow[], now: number): WindowState {
  const all = windows.map((window): Openings => ({ ...window, openings: scheduleOf(window) }));
  const until = closingAfter(all, now);
  if (until > now) return { kind: "open", until };
  const next = all.flatMap(({ openings, timeZone }) => {
    const opensAt = openings.next(now);
    return opensAt === undefined ? [] : [{ opensAt, timeZone }];
  });
  const [first, ...others] = next;
  if (!first) return { kind: "never" };
  return {
    kind: "closed",
    ...others.reduce((earliest, each) => (each.opensAt < earliest.opensAt ? each : earliest), first),
  };
}

/** When the windows that are open now close, with all that overlap or adjoin them; `now` if none is open. */
function closingAfter(windows: readonly Openings[], now: number): number {
  let end = now;
  while (end < now + searchedMs) {
    const later = Math.max(...windows.map((window) => closingOf(window, end)));
    if (later <= end) return end;
    end = later;
  }
  return end;
}

/** When a window closes that is open at this time; the time itself if it is closed. */
function closingOf({ openings, durationMs }: Openings, at: number): number {
  const opened = openings.next(at - durationMs);
  return opened === undefined || opened > at ? at : opened + durationMs;
}
