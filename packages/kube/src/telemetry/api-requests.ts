/**
 * Counts the requests to the API server with client-go's metric name, and logs those that the API server forbids.
 *
 * A denied request is a defect of the installation that might otherwise go unnoticed: a controller that lacks one of many
 * permissions seems to work, and what needs that permission never happens.
 */
import { missingPermission } from "../client/denial.ts";
import { isForbidden, isInvalid, type ApiError } from "../client/errors.ts";
import type { ApiResponse } from "../client/requests/request.ts";
import { systemClock, type Clock } from "../clock.ts";
import type { Logger } from "./log.ts";
import type { Registry } from "./metrics.ts";

interface RequestTelemetryOptions {
  readonly log: Logger;
  readonly metrics: Registry;
  readonly clock?: Clock;
}

/** The same denial is logged again after this time. */
const repeatMs = 10 * 60_000;
const maxRemembered = 500;

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
    if (loggedAt.size >= maxRemembered && oldest !== undefined) loggedAt.delete(oldest);
    loggedAt.set(key, now);
    return true;
  };
  return ({ call, method, code, error, isDenialExpected = false }) => {
    // Otherwise, an alert would report the checks of an admission policy that is in force.
    if (isDenialExpected && isAdmissionDenial(error)) return;
    requests.increment({ code: String(code), method });
    if (isForbidden(error)) logForbidden(log, { call, error, isDue });
  };
}

const isAdmissionDenial = (error: unknown): boolean =>
  (isForbidden(error) || isInvalid(error)) && missingPermission(error) === undefined;

interface Forbidden {
  readonly call: string;
  readonly error: ApiError;
  readonly isDue: (key: string) => boolean;
}

function logForbidden(log: Logger, { call, error, isDue }: Forbidden): void {
  const { status: code, explanation } = error;
  const permission = missingPermission(error);
  if (!permission) {
    if (isDue(call))
      log.info("admission rejected a request; correct the object or the policy", { call, code, explanation });
  } else if (isDue(JSON.stringify(permission))) {
    const message =
      "the API server denied a request, because no role grants it to this service account; " +
      "upgrade the roles together with the operator, or bind a role with this permission";
    log.warn(message, { call, code, ...permission });
  }
}
