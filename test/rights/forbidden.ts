/** Requests of the operator that the API server answered with 403: none, unless a test provokes them and names them. */
import type { ApiResponse } from "@pko/kube";

/** The lines of the operator's log, in either format, that name them. It logs the first of each kind. */
export const forbiddenIn = (log: string): string[] =>
  log.split("\n").filter((line) => / code=403\b|"code":403\b/.test(line));

/** Throws, unless each of them matches one of those that the test expects. */
export function assertNoneForbidden(found: readonly string[], expected: readonly RegExp[] = []): void {
  const unexpected = found.filter((each) => !expected.some((pattern) => pattern.test(each)));
  if (unexpected.length > 0) {
    throw new Error(`the API server answered ${unexpected.length} requests with 403:\n${unexpected.join("\n")}`);
  }
}

/** For `onResponse` of a connection. */
export class ForbiddenResponses {
  readonly found: string[] = [];

  readonly onResponse = ({ code, error }: ApiResponse): void => {
    if (code === 403 && error) this.found.push(error.message);
  };
}
