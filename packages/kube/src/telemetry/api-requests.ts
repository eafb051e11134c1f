/**
 * The requests to the API server: counted under client-go's name, and logged where the API server forbids one.
 *
 * A denied request is a defect of the installation that nobody may see otherwise: a controller that lacks one right of
 * many works, and what needs that right never happens.
 */
import { denialOf } from "../client/denial.ts";
import { isForbidden, type ApiError } from "../client/errors.ts";
import type { ApiResponse } from "../client/request.ts";
import { systemClock, type Clock } from "../clock.ts";
import type { Logger } from "./log.ts";
import type { Registry } from "./metrics.ts";

interface RequestTelemetryOptions {
  readonly log: Logger;
  readonly metrics: Registry;
  readonly clock?: Clock;
}

/** The same request is logged again after this time. */
const repeatMs = 10 * 60_000;
const mostRemembered = 500;

/** For `onResponse` of a connection. */
export function requestTelemetry({
  log,
  metrics,
  clock = systemClock,
}: RequestTelemetryOptions): (response: ApiResponse) => void {
  const requests = metrics.counter({
    name: "rest_client_requests_total",
    help: "Requests to the API server, by the status code of its response and the HTTP method.",
    labels: ["code", "method"],
  });
  const loggedAt = new Map<string, number>();
  const isDue = (key: string): boolean => {
    const now = clock.monotonic();
    if (now - (loggedAt.get(key) ?? -Infinity) < repeatMs) return false;
    loggedAt.delete(key);
    const [oldest] = loggedAt.keys();
    if (loggedAt.size >= mostRemembered && oldest !== undefined) loggedAt.delete(oldest);
    loggedAt.set(key, now);
    return true;
  };
  return ({ call, method, code, error }) => {
    requests.increment({ code: String(code), method });
    if (isForbidden(error)) logForbidden(log, { call, error, isDue });
  };
}

interface Forbidden {
  readonly call: string;
  readonly error: ApiError;
  readonly isDue: (key: string) => boolean;
}

function logForbidden(log: Logger, { call, error, isDue }: Forbidden): void {
  const { status: code, explanation } = error;
  const right = denialOf(error);
  if (!right) {
    if (isDue(call))
      log.info("admission rejected a request; correct the object or the policy", { call, code, explanation });
  } else if (isDue(JSON.stringify(right))) {
    const message =
      "the API server denied a request, because no role grants it to this service account; " +
      "upgrade the roles together with the operator, or bind a role with this right";
    log.warn(message, { call, code, ...right });
  }
}
