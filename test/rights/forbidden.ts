/** Requests of the operator with the response 403: there must be none except those that a test expects. */
import type { ApiResponse } from "@pko/kube";

import { unexpected } from "../logs/errors.ts";

/** The lines about them in the operator's log, in either format. It logs the first of each kind. */
export const forbiddenIn = (log: string): string[] =>
  log.split("\n").filter((line) => / code=403\b|"code":403\b/.test(line));

/** Throws unless each one matches a pattern that the test expects. */
export function assertNoneForbidden(found: readonly string[], expected: readonly RegExp[] = []): void {
  const denied = unexpected(found, expected);
  if (denied.length > 0) throw new Error(`${denied.length} requests got the response 403:\n${denied.join("\n")}`);
}

/** For `onResponse` of a connection. */
export class ForbiddenResponses {
  readonly found: string[] = [];

  readonly onResponse = ({ code, error }: ApiResponse): void => {
    if (code === 403 && error) this.found.push(error.message);
  };
}
