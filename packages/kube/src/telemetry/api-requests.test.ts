import { expect, test } from "bun:test";

import { ApiError } from "../client/errors.ts";
import type { ApiResponse } from "../client/requests/request.ts";
import { manualClock } from "../manual-clock.ts";
import { requestTelemetry } from "./api-requests.ts";
import { logger } from "./log.ts";
import { metricsRegistry } from "./metrics.ts";

function rig() {
  const lines: Record<string, unknown>[] = [];
  const clock = manualClock();
  const metrics = metricsRegistry();
  const log = logger({ write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  return { lines, clock, metrics, onResponse: requestTelemetry({ log, metrics, clock }) };
}

function forbidden(name: string, message: string): ApiResponse {
  const call = `GET /api/v1/namespaces/team-a/secrets/${name}`;
  const error = new ApiError(call, { status: 403, reason: "Forbidden", message });
  return { call, method: "GET", code: 403, error };
}

const denied = (name: string, verb = "get"): ApiResponse =>
  forbidden(
    name,
    `secrets "${name}" is forbidden: User "x" cannot ${verb} resource "secrets" in API group "" in the namespace "team-a"`,
  );

test("counts requests by code and method, including those without a response", () => {
  const { metrics, onResponse, lines } = rig();
  onResponse({ call: "GET /a", method: "GET", code: 200 });
  onResponse({ call: "GET /b", method: "GET", code: 200 });
  onResponse({ call: "POST /a", method: "POST", code: "<error>" });
  expect(metrics.expose()).toContain('rest_client_requests_total{code="200",method="GET"} 2');
  expect(metrics.expose()).toContain('rest_client_requests_total{code="<error>",method="POST"} 1');
  expect(lines).toEqual([]);
});

test("logs a denied request with the missing permission, at intervals for each permission", async () => {
  const { clock, onResponse, lines } = rig();
  onResponse(denied("a"));
  onResponse(denied("b"));
  onResponse(denied("a", "delete"));
  expect(lines).toMatchObject([
    { level: "warn", code: 403, verb: "get", resource: "secrets", apiGroup: "", namespace: "team-a" },
    { level: "warn", code: 403, verb: "delete" },
  ]);
  clock.stepWallClock(-3_600_000);
  await clock.advance(11 * 60_000);
  onResponse(denied("a"));
  expect(lines.length).toBe(3);
});

test("logs a rejection by admission at level info", () => {
  const { onResponse, lines } = rig();
  onResponse(forbidden("a", 'secrets "a" is forbidden: exceeded quota: all'));
  onResponse(forbidden("a", 'secrets "a" is forbidden: exceeded quota: all'));
  expect(lines).toMatchObject([
    { level: "info", code: 403, explanation: 'secrets "a" is forbidden: exceeded quota: all' },
  ]);
});

test("counts and logs no denial by admission that was expected, but a missing permission", () => {
  const { metrics, onResponse, lines } = rig();
  const byPolicy = forbidden("a", "secrets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: spec: no");
  onResponse({ ...byPolicy, isDenialExpected: true });
  expect(metrics.expose()).not.toContain('code="403"');
  expect(lines).toEqual([]);
  onResponse({ ...denied("a"), isDenialExpected: true });
  expect(metrics.expose()).toContain('code="403"');
  expect(lines).toMatchObject([{ level: "warn", verb: "get" }]);
});

test("remembers a bounded number of permissions", () => {
  const { onResponse, lines } = rig();
  for (let number = 0; number < 501; number++) onResponse(denied("a", `verb${number}`));
  onResponse(denied("a", "verb500"));
  expect(lines.length).toBe(501);
  onResponse(denied("a", "verb0"));
  expect(lines.length).toBe(502);
});
