import { describe, expect, test } from "bun:test";

import { missingPermission, type MissingPermission } from "./denial.ts";
import { ApiError } from "./errors.ts";

const user = 'User "system:serviceaccount:pulumi:operator"';

const cases: readonly (readonly [what: string, message: string, expected: MissingPermission | undefined])[] = [
  [
    "a permission in a namespace",
    `updates.auto.pulumi.com "up" is forbidden: ${user} cannot get resource "updates" in API group "auto.pulumi.com" in the namespace "team-a"`,
    { verb: "get", resource: "updates", apiGroup: "auto.pulumi.com", namespace: "team-a" },
  ],
  [
    "a cluster-wide permission",
    `secrets is forbidden: ${user} cannot list resource "secrets" in API group "" at the cluster scope`,
    { verb: "list", resource: "secrets", apiGroup: "" },
  ],
  [
    "a permission on a subresource",
    `stacks.pulumi.com "web" is forbidden: ${user} cannot patch resource "stacks/status" in API group "pulumi.com" in the namespace "team-a": RBAC: role.rbac.authorization.k8s.io "operator" not found`,
    { verb: "patch", resource: "stacks/status", apiGroup: "pulumi.com", namespace: "team-a" },
  ],
  [
    "a quota",
    'pods "web" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=1, limited: pods=1',
    undefined,
  ],
];

describe("the permission that a 403 names", () => {
  for (const [what, message, expected] of cases) {
    test(what, () => {
      expect(missingPermission(new ApiError("GET /x", { status: 403, reason: "Forbidden", message }))).toEqual(
        expected,
      );
    });
  }

  test("is undefined for another status", () => {
    const [, message = ""] = cases[0] ?? [];
    expect(missingPermission(new ApiError("GET /x", { status: 404, reason: "NotFound", message }))).toBeUndefined();
    expect(missingPermission(new Error(message))).toBeUndefined();
  });
});
