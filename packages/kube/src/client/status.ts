/** Reading the API server's explanation of a failure. */
import { ApiError, type Refusal, type StatusCause } from "./errors.ts";
import { arrayAt, numberAt, objectAt, parseJson, textAt } from "./json.ts";

/** What is taken where the answer says nothing: a proxy on the way knows no Kubernetes. */
interface Defaults {
  readonly status: number;
  readonly reason: string;
  readonly retryAfterSeconds?: number;
}

export function refusalOf(status: unknown, defaults: Defaults): Refusal {
  const details = objectAt(status, "details");
  const retryAfterSeconds = defaults.retryAfterSeconds ?? numberAt(details, "retryAfterSeconds");
  return {
    status: numberAt(status, "code") ?? defaults.status,
    reason: textAt(status, "reason") ?? defaults.reason,
    message: textAt(status, "message") ?? "no explanation",
    causes: arrayAt(details, "causes").map(causeOf),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

function causeOf(cause: unknown): StatusCause {
  const [field, reason, message] = [textAt(cause, "field"), textAt(cause, "reason"), textAt(cause, "message")];
  return {
    ...(field !== undefined && { field }),
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message }),
  };
}

/** The error of an answer that is not success. A body that is no `Status` is not repeated: it may be anything. */
export async function apiErrorOf(call: string, response: Response): Promise<ApiError> {
  const header = response.headers.get("retry-after");
  const retryAfterSeconds = header !== null && /^\d+$/.test(header) ? Number(header) : undefined;
  const text = await response.text();
  const defaults: Defaults = {
    status: response.status,
    reason: response.statusText.replaceAll(" ", "") || "Unknown",
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
  return new ApiError(call, refusalOf(asJson(text), defaults));
}

function asJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
