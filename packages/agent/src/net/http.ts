/** Requests to checked addresses, with results as outcomes of `prepare`. */
import { request, type HttpOptions, type HttpResult } from "@pko/git";

import { done, failed, type Outcome } from "../outcome.ts";

type Answered = Extract<HttpResult, { kind: "answered" }>;

export async function get(url: URL, options: HttpOptions): Promise<Outcome<Answered>> {
  const result = await request(url, options);
  return result.kind === "answered" ? done(result) : requestFailure(result);
}

export function requestFailure(result: Exclude<HttpResult, Answered>): Outcome<never> {
  switch (result.kind) {
    case "refused":
      return failed("sourceInvalid", result.message);
    case "unreachable":
      return failed("sourceUnavailable", result.message);
  }
}

/** Maps an HTTP error status to a failure of the source. */
export function statusFailure(what: string, status: number): Outcome<never> {
  if (status === 401 || status === 403)
    return failed("sourceUnauthorized", `the server denies access to ${what} (HTTP ${status}); check the credentials`);
  if (status === 404 || status === 410)
    return failed("sourceNotFound", `the server does not have ${what} (HTTP ${status}); check the URL`);
  return failed("sourceUnavailable", `the server cannot serve ${what} now (HTTP ${status}); the operator retries`);
}
