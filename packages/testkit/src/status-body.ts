/** Error responses in the API server's format. */

const reasons: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Expired",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

interface Failure {
  readonly status: number;
  readonly reason?: string;
  readonly retryAfterSeconds?: number;
}

export function statusResponse({
  status,
  reason = reasons[status] ?? "Unknown",
  retryAfterSeconds,
}: Failure): Response {
  const body = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code: status,
    reason,
    message: "injected by a test",
  };
  const headers = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
  return Response.json(body, { status, headers });
}
