import { expect, test } from "bun:test";

import { logger, metricsRegistry, requestTelemetry, ApiError } from "@pko/kube";

import { assertNoneForbidden, forbiddenIn } from "./forbidden.ts";

/** What the operator logs of a request that is answered with 403. */
function logOf(message: string): string {
  let text = "not JSON\n";
  const log = logger({ write: (line) => void (text += line) });
  log.info("started", { code: "403" });
  const call = "GET /apis/auto.pulumi.com/v1alpha1/namespaces/a/updates/up";
  const error = new ApiError(call, { status: 403, reason: "Forbidden", message });
  requestTelemetry({ log, metrics: metricsRegistry() })({ call, method: "GET", code: 403, error });
  return text;
}

test("the log names a denied request, and nothing else counts as one", () => {
  const found = forbiddenIn(logOf('User "x" cannot get resource "updates" in API group "auto.pulumi.com"'));
  expect(found.length).toBe(1);
  expect(() => assertNoneForbidden(found)).toThrow("namespaces/a/updates/up");
  expect(() => assertNoneForbidden(found, [/"resource":"updates"/])).not.toThrow();
  expect(() => assertNoneForbidden(found, [/"resource":"secrets"/])).toThrow();
});

test("the log names what admission rejects", () => {
  expect(forbiddenIn(logOf("exceeded quota: pods")).join()).toContain("exceeded quota");
});
