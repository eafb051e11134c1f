/** Which right a call needed, where the API server's authorizer denied it. */
import { isForbidden } from "./errors.ts";

/** In the words of RBAC rules. */
export interface Denial {
  readonly verb: string;
  /** Plural, with its subresource: `stacks/status`. */
  readonly resource: string;
  /** Empty for the core group. */
  readonly apiGroup: string;
  /** Absent where the right is needed for the whole cluster. */
  readonly namespace?: string;
}

const denied = /cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?/;

/** Undefined for every other error, also for a 403 of admission: a quota, a webhook, a namespace that is being deleted. */
export function denialOf(error: unknown): Denial | undefined {
  if (!isForbidden(error)) return undefined;
  const [, verb, resource, apiGroup = "", namespace] = denied.exec(error.explanation) ?? [];
  if (verb === undefined || resource === undefined) return undefined;
  return { verb, resource, apiGroup, ...(namespace !== undefined && { namespace }) };
}
