/** A service account that may read config maps in its namespace. */
import { builtin, resource, type Client, type KubeObject } from "@pko/kube";
import { serviceAccountToken } from "@pko/testkit";

import { waitUntilEffective } from "../../rights/account.ts";

const rbac = { apiVersion: "rbac.authorization.k8s.io/v1", namespaced: true } as const;
const roles = resource<KubeObject & { rules: object[] }>({ ...rbac, kind: "Role", plural: "roles" });
const roleBindings = resource<KubeObject & { roleRef: object; subjects: object[] }>({
  ...rbac,
  kind: "RoleBinding",
  plural: "rolebindings",
});

/** Returns a token when the role is effective. */
export async function createRobot(admin: Client, namespace: string, name: string): Promise<string> {
  const metadata = { name, namespace };
  const apply = { fieldManager: "admin" };
  await admin.create(builtin.serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata });
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list", "watch"] }];
  await admin.apply(roles, { apiVersion: rbac.apiVersion, kind: "Role", metadata, rules }, apply);
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name };
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  const binding = { apiVersion: rbac.apiVersion, kind: "RoleBinding", metadata, roleRef, subjects };
  await admin.apply(roleBindings, binding, apply);
  const user = `system:serviceaccount:${namespace}:${name}`;
  await waitUntilEffective(admin, { name: user, namespace, rules }, { user });
  return await serviceAccountToken(admin, metadata);
}
