/** What a user of a test may do in a namespace. */
import { resource, type Client, type KubeObject, type ObjectRef } from "@pko/kube";

import { waitUntilEffective } from "../../rights/account.ts";

const group = "rbac.authorization.k8s.io";
const kindOf = (kind: string, plural: string) =>
  resource<KubeObject>({ apiVersion: `${group}/v1`, kind, plural, namespaced: true });
const roles = kindOf("Role", "roles");
const bindings = kindOf("RoleBinding", "rolebindings");

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

type Subject =
  | { readonly apiGroup: typeof group; readonly kind: "User"; readonly name: string }
  | { readonly kind: "ServiceAccount"; readonly name: string; readonly namespace: string };

export const userNamed = (name: string): Subject => ({ apiGroup: group, kind: "User", name });

interface Grant {
  readonly subject: Subject;
  readonly rules: readonly Rule[];
}

/** `ref` names the role and its binding. Returns when they are effective. */
export async function grant(client: Client, ref: Required<ObjectRef>, { subject, rules }: Grant): Promise<void> {
  const { name, namespace } = ref;
  const metadata = { name, namespace };
  const roleRef = { apiGroup: group, kind: "Role", name };
  await client.create(roles, { ...roles, metadata, rules } as KubeObject);
  await client.create(bindings, { ...bindings, metadata, roleRef, subjects: [subject] } as KubeObject);
  await waitUntilEffective(client, { name, namespace, rules }, { user: userNameOf(subject) });
}

const userNameOf = (subject: Subject): string =>
  subject.kind === "User" ? subject.name : `system:serviceaccount:${subject.namespace}:${subject.name}`;
