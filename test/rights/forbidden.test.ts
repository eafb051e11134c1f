import { expect, test } from "bun:test";

import { ApiError, logger, metricsRegistry, requestTelemetry, type LogFormat } from "@pko/kube";

import { assertNoneForbidden, forbiddenIn } from "./forbidden.ts";

/** What the operator logs for a request with the response 403. */
function logFor(message: string, format: LogFormat = "json"): string {
  let text = "";
  const log = logger({ format, write: (line) => void (text += line) });
  log.info("started", { port: 403, code: 4030 });
  const call = "GET /apis/auto.pulumi.com/v1alpha1/namespaces/a/updates/up";
  const error = new ApiError(call, { status: 403, reason: "Forbidden", message });
  requestTelemetry({ log, metrics: metricsRegistry() })({ call, method: "GET", code: 403, error });
  return text;
}

const denied = 'User "x" cannot get resource "updates" in API group "auto.pulumi.com"';

for (const format of ["json", "console"] as const) {
  test(`a denied request is found in the ${format} log, and nothing else`, () => {
    const found = forbiddenIn(logFor(denied, format));
    expect(found.length).toBe(1);
    expect(() => assertNoneForbidden(found)).toThrow("namespaces/a/updates/up");
    expect(() => assertNoneForbidden(found, [/updates/])).not.toThrow();
    expect(() => assertNoneForbidden(found, [/secrets/])).toThrow();
  });
}

test("a rejection by admission is found in the log", () => {
  expect(forbiddenIn(logFor("exceeded quota: pods")).join()).toContain("exceeded quota");
});
