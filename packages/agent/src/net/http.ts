/** Requests to checked addresses, in the agent's own terms. */
import { request, type HttpOptions, type HttpResult } from "@pko/git";
import { assertNever } from "@pko/rpc";

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
    default:
      return assertNever(result);
  }
}

/** What an HTTP status other than success means for a source. */
export function statusFailure(what: string, status: number): Outcome<never> {
  if (status === 401 || status === 403) return failed("sourceUnauthorized", `${what}: access denied (${status})`);
  if (status === 404 || status === 410) return failed("sourceNotFound", `${what}: not found (${status})`);
  return failed("sourceUnavailable", `${what}: the server answered ${status}`);
}
