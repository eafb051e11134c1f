import { describe, expect, test } from "bun:test";

import { logger, type LogFormat } from "@pko/kube";

import { createLog, type Log } from "../../packages/agent/src/system/log.ts";
import { Redactor } from "../../packages/agent/src/system/redact.ts";
import { agentErrors, assertNoErrors, operatorErrors } from "./errors.ts";

const reset = (): Error => new Error("reset", { cause: new Error("the connection was closed") });

function operatorLog(format: LogFormat, hasError: boolean): string {
  let text = "";
  const log = logger({ format, level: "debug", write: (line) => void (text += line) }).child({ logger: "stack" });
  log.debug("reconciled", { text: "ERROR" });
  log.info("reconcile aborted", { error: reset() });
  if (hasError) log.error("reconcile failed", { error: reset() });
  log.warn("a request failed", { level: "error" });
  return text;
}

describe("in the operator's log", () => {
  for (const format of ["json", "console"] as const) {
    test(`only the errors are found, in the format ${format}`, () => {
      const found = operatorErrors(operatorLog(format, true));
      expect(found.length).toBe(1);
      expect(found.join()).toMatch(/reconcile failed[^]*the connection was closed/);
      expect(operatorErrors(operatorLog(format, false))).toEqual([]);
    });
  }

  test("text that is not from the logger is an error", () => {
    const text = "error: --watch-namespaces: is not a name\n";
    expect(operatorErrors(`${operatorLog("json", false)}${text}`)).toEqual([text.trim()]);
  });
});

function agentLog(write: (log: Log) => void): string {
  let text = "";
  const log = createLog(new Redactor(), (line) => void (text += line));
  log.info("started", { text: `"level":"error"` });
  log.printed(new Redactor().clean('{"time":"","level":"error","message":"printed by the program"}'));
  write(log);
  return text;
}

describe("in an agent's log", () => {
  test("its errors are found", () => {
    const found = agentErrors(agentLog((log) => log.error("call failed", { method: "start" })));
    expect(found.length).toBe(1);
    expect(found.join()).toContain("call failed");
  });

  test("what a program prints, and what goes wrong in it, is not an error", () => {
    const log = agentLog((log) => {
      const event = { kind: "diagnostic", severity: "error", message: '{"level":"error"}' } as const;
      log.event("run", { seq: 1, time: "2026-01-01T00:00:00Z", event });
    });
    expect(agentErrors(log)).toEqual([]);
  });
});

test("errors that a test expects do not fail it", () => {
  expect(() => assertNoErrors(["reconcile failed: reset"], [/reset/])).not.toThrow();
  expect(() => assertNoErrors(["reconcile failed: reset"], [/quota/])).toThrow("1 unexpected errors were logged");
});
