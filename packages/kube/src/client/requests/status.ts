/** Parses the `Status` object of an unsuccessful response. */
import { ApiError, type Failure, type StatusCause } from "../errors.ts";
import { arrayAt, numberAt, objectAt, parseJson, textAt } from "./json.ts";

/** Used where the response has no `Status`: a proxy in between may have sent it. */
interface Defaults {
  readonly status: number;
  readonly reason: string;
  readonly retryAfterSeconds?: number;
}

export function parseFailure(status: unknown, defaults: Defaults): Failure {
  const details = objectAt(status, "details");
  const retryAfterSeconds = defaults.retryAfterSeconds ?? numberAt(details, "retryAfterSeconds");
  return {
    status: numberAt(status, "code") ?? defaults.status,
    reason: textAt(status, "reason") ?? defaults.reason,
    message: textAt(status, "message") ?? "no explanation",
    causes: arrayAt(details, "causes").map(parseCause),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

function parseCause(cause: unknown): StatusCause {
  const [field, reason, message] = [textAt(cause, "field"), textAt(cause, "reason"), textAt(cause, "message")];
  return {
    ...(field !== undefined && { field }),
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message }),
  };
}

/** The error of an unsuccessful response. A body that is not a `Status` is not quoted: it may contain anything. */
export async function parseApiError(call: string, response: Response): Promise<ApiError> {
  const header = response.headers.get("retry-after");
  const retryAfterSeconds = header !== null && /^\d+$/.test(header) ? Number(header) : undefined;
  const text = await response.text();
  const defaults: Defaults = {
    status: response.status,
    reason: response.statusText.replaceAll(" ", "") || "Unknown",
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
  return new ApiError(call, parseFailure(parseOptionalJson(text), defaults));
}

function parseOptionalJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
