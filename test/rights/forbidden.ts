/** Requests of the operator that the API server answered with 403: none, unless a test provokes them and names them. */
import type { ApiResponse } from "@pko/kube";

/** Those that the operator's log names. It logs the first of each kind. */
export function forbiddenIn(log: string): string[] {
  return log.split("\n").flatMap((line) => {
    const { code, call, msg, ...rest } = fieldsOf(line);
    return code === 403 ? [`${String(call)}: ${String(msg)} ${JSON.stringify(rest)}`] : [];
  });
}

/** A container's log may hold lines of others. */
function fieldsOf(line: string): Readonly<Record<string, unknown>> {
  try {
    const fields: unknown = JSON.parse(line);
    return typeof fields === "object" && fields !== null ? { ...fields } : {};
  } catch {
    return {};
  }
}

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
