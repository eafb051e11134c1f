import { expect, test } from "bun:test";

import { logger, type LogLevel } from "@pko/kube";

import { logLevelSwitch } from "./log-level.ts";

/** A log with a switch, and what was written since the last call. */
function adjustable(configured: LogLevel = "info") {
  const logLevel = logLevelSwitch(configured);
  const lines: string[] = [];
  const log = logger({ level: () => logLevel.current, write: (line) => lines.push(line) });
  const annotate = (value?: string): void =>
    logLevel.read(value === undefined ? { other: "x" } : { "pulumi.com/log-level": value }, log);
  const written = (): unknown[] => lines.splice(0).map((line): unknown => JSON.parse(line));
  return { logLevel, log, annotate, written };
}

test("the annotation changes the level, and without it the configured one applies", () => {
  const { log, annotate, written } = adjustable();
  annotate("debug");
  log.debug("reconciled");
  annotate();
  log.debug("reconciled");
  expect(written()).toMatchObject([
    { level: "warn", msg: "the log level was changed", from: "info", to: "debug" },
    { msg: "reconciled" },
    { msg: "the log level was changed", from: "debug", to: "info" },
  ]);
});

test("a change is reported by an operator that logs only errors", () => {
  const { annotate, written } = adjustable("error");
  annotate("debug");
  annotate();
  expect(written()).toMatchObject([
    { msg: "the log level was changed", from: "error", to: "debug" },
    { msg: "the log level was changed", from: "debug", to: "error" },
  ]);
});

test("an unknown level changes nothing, and is reported once", () => {
  const { logLevel, annotate, written } = adjustable();
  annotate("debug");
  annotate("loud");
  annotate("loud");
  expect(logLevel.current).toBe("debug");
  const msg = "the requested log level is unknown; use debug, info, warn or error";
  expect(written().slice(1)).toMatchObject([{ msg, requested: "loud" }]);
});

test("nothing is reported if nothing changes", () => {
  const { annotate, written } = adjustable();
  annotate();
  annotate("info");
  expect(written()).toEqual([]);
});
