/** The permission that was missing when the API server's authorizer denied a call. */
import { isForbidden } from "./errors.ts";

/** In terms of an RBAC rule. */
export interface MissingPermission {
  readonly verb: string;
  /** Plural, with its subresource: `stacks/status`. */
  readonly resource: string;
  /** Empty for the core group. */
  readonly apiGroup: string;
  /** Absent if the permission is needed cluster-wide. */
  readonly namespace?: string;
}

const denied = /cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?/;

/** Undefined for every other error, including a 403 from admission: a quota, a webhook, a namespace that is being deleted. */
export function missingPermission(error: unknown): MissingPermission | undefined {
  if (!isForbidden(error)) return undefined;
  const [, verb, resource, apiGroup = "", namespace] = denied.exec(error.explanation) ?? [];
  if (verb === undefined || resource === undefined) return undefined;
  return { verb, resource, apiGroup, ...(namespace !== undefined && { namespace }) };
}

/** As `kubectl auth can-i` accepts it. */
export function permittedResource({ resource, apiGroup }: Pick<MissingPermission, "resource" | "apiGroup">): string {
  const [plural = "", subresource] = resource.split("/");
  const name = apiGroup === "" ? plural : `${plural}.${apiGroup}`;
  return subresource === undefined ? name : `${name}/${subresource}`;
}

/** For people: `get pods/log in namespace a`. */
export const permissionText = (missing: MissingPermission): string => {
  const where = missing.namespace === undefined ? "in the whole cluster" : `in namespace ${missing.namespace}`;
  return `${missing.verb} ${permittedResource(missing)} ${where}`;
};
