import { expect, test } from "bun:test";

import { normalizeStack } from "./index.ts";

const stack = (updateWindows: readonly object[]) => ({
  metadata: { name: "web", namespace: "team" },
  spec: { stack: "dev", programRef: { name: "web" }, updateWindows },
});

test("a window is in UTC unless it names a time zone", () => {
  const windows = [
    { schedule: "0 22 * * *", durationSeconds: 3600 },
    { schedule: "@daily", durationSeconds: 60, timeZone: "Europe/Berlin" },
  ];
  const normal = normalizeStack(stack(windows));
  expect(normal.ok && normal.value.windows).toEqual([
    { schedule: "0 22 * * *", timeZone: "UTC", durationMs: 3_600_000 },
    { schedule: "@daily", timeZone: "Europe/Berlin", durationMs: 60_000 },
  ]);
});

const remedy = 'set minute, hour, day of month, month and day of week, such as "0 22 * * MON-FRI"';

test.each([
  ["four fields", "0 22 * *", "is not a schedule"],
  ["seconds", "0 0 22 * * *", "is not a schedule"],
  ["a time zone in the schedule", "TZ=Asia/Tokyo 0 22 * * *", "is not a schedule"],
  ["the last day of the month", "0 22 L * *", "is not a schedule"],
  ["an hour that does not exist", "0 24 * * *", "is not a schedule: Invalid value for hour: 24"],
  ["an unknown weekday", "0 22 * * FOO", "is not a schedule: configuration entry 5 (FOO) contains illegal characters"],
  ["a range from Friday to Monday", "0 22 * * FRI-MON", "is not a schedule: From value is larger than to value: '5-1'"],
])("a schedule is invalid: %s", (_, schedule, message) => {
  const normal = normalizeStack(stack([{ schedule, durationSeconds: 60 }]));
  expect(!normal.ok && normal.problems).toEqual([{ field: "spec.updateWindows[0].schedule", message, remedy }]);
});

test("a window that never opens is invalid", () => {
  const normal = normalizeStack(stack([{ schedule: "0 0 30 2 *", durationSeconds: 60 }]));
  const problem = { message: "no such date exists", remedy: "choose a day that the month has" };
  expect(!normal.ok && normal.problems).toEqual([{ field: "spec.updateWindows[0].schedule", ...problem }]);
});

test.each(["Europe/Atlantis", "+01:00", "Local"])("%s is not a time zone", (timeZone) => {
  const normal = normalizeStack(
    stack([
      { schedule: "@daily", durationSeconds: 60 },
      { schedule: "@daily", durationSeconds: 60, timeZone },
    ]),
  );
  expect(!normal.ok && normal.problems.map(({ field, message }) => `${field}: ${message}`)).toEqual([
    "spec.updateWindows[1].timeZone: is not the name of a time zone",
  ]);
});
