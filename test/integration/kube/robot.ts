/** A service account that may read config maps in its namespace. */
import { builtin, isNotFound, resource, type Client, type KubeObject } from "@pko/kube";
import { serviceAccountToken } from "@pko/testkit";

import { waitUntilEffective } from "../../rights/account.ts";

const rbac = { apiVersion: "rbac.authorization.k8s.io/v1", namespaced: true } as const;
const roles = resource<KubeObject & { rules: object[] }>({ ...rbac, kind: "Role", plural: "roles" });
const roleBindings = resource<KubeObject & { roleRef: object; subjects: object[] }>({
  ...rbac,
  kind: "RoleBinding",
  plural: "rolebindings",
});

/**
 * Replaces the service account `robot` and returns a token of the new one, when its role is effective. Tokens of the old one
 * become invalid.
 */
export async function createRobot(admin: Client, namespace: string): Promise<string> {
  const metadata = { name: "robot", namespace };
  const apply = { fieldManager: "admin" };
  await admin.delete(builtin.serviceAccounts, metadata).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  await admin.create(builtin.serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata });
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list", "watch"] }];
  await admin.apply(roles, { apiVersion: rbac.apiVersion, kind: "Role", metadata, rules }, apply);
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "robot" };
  const subjects = [{ kind: "ServiceAccount", name: "robot", namespace }];
  const binding = { apiVersion: rbac.apiVersion, kind: "RoleBinding", metadata, roleRef, subjects };
  await admin.apply(roleBindings, binding, apply);
  const user = `system:serviceaccount:${namespace}:robot`;
  await waitUntilEffective(admin, { name: user, namespace, rules }, { user });
  return await serviceAccountToken(admin, metadata);
}
