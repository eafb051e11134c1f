/** The update windows of a Stack, with their defaults. */
import { stackMessages as messages } from "../stack/messages.ts";
import type { StackSpec } from "../stack/spec.ts";
import { everOpens, hasSchedulePattern, isTimeZone, scheduleProblem } from "../windows/schedule.ts";
import type { UpdateWindow } from "../windows/window-at.ts";
import type { Findings } from "./findings.ts";

type WindowSpec = NonNullable<StackSpec["updateWindows"]>[number];

export function normalWindows(windows: readonly WindowSpec[], findings: Findings): UpdateWindow[] {
  return windows.map(({ schedule, timeZone, durationSeconds }, index) => {
    const field = `spec.updateWindows[${index}]`;
    const zone = timeZone || "UTC";
    checkSchedule(schedule, { field: `${field}.schedule`, findings });
    if (!isTimeZone(zone)) findings.problem(`${field}.timeZone`, messages.unknownTimeZone);
    return { schedule, timeZone: zone, durationMs: durationSeconds * 1000 };
  });
}

function checkSchedule(schedule: string, { field, findings }: { field: string; findings: Findings }): void {
  if (!hasSchedulePattern(schedule)) return findings.problem(field, messages.invalidSchedule);
  const problem = scheduleProblem(schedule);
  if (problem !== undefined) {
    const { message, remedy } = messages.invalidSchedule;
    findings.problem(field, { message: `${message}: ${problem}`, remedy });
  } else if (!everOpens(schedule)) findings.problem(field, messages.windowNeverOpens);
}
