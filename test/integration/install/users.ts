/** Users with client certificates, who have only the cluster roles that a test binds to them in one namespace. */
import { operatorNamespace, type Rule } from "@pko/install";
import {
  ApiError,
  fetchTransport,
  resource,
  type Client,
  type Credentials,
  type KubeObject,
  type Resource,
} from "@pko/kube";
import { waitFor, type TestNamespace } from "@pko/testkit";

import { waitUntilEffective } from "../../rights/account.ts";

/** Those of the quickstart manifest. The API server for tests aggregates no roles: that needs a controller. */
export type UserRole = "view" | "edit" | "approver";

export interface TestUser {
  readonly name: string;
  readonly client: Client;
  readonly credentials: Credentials;
}

const group = "rbac.authorization.k8s.io";

const roleBindings = resource<KubeObject & { readonly roleRef: object; readonly subjects: readonly object[] }>({
  apiVersion: `${group}/v1`,
  kind: "RoleBinding",
  plural: "rolebindings",
  namespaced: true,
});

const ruleFor = (apiGroup: string, resourceName: string, verb: string): Rule => ({
  apiGroups: [apiGroup],
  resources: [resourceName],
  verbs: [verb],
});

/** A part of what each role permits. */
const permissions: Readonly<Record<UserRole, Rule>> = {
  view: ruleFor("pulumi.com", "stacks", "get"),
  edit: ruleFor("pulumi.com", "stacks", "patch"),
  approver: ruleFor("auto.pulumi.com", "approvals", "create"),
};

/** Returns when the roles are effective. */
export async function createUser(
  { server, name: namespace }: TestNamespace,
  { name, roles }: { readonly name: string; readonly roles: readonly UserRole[] },
): Promise<TestUser> {
  await Promise.all(
    roles.map((role) =>
      server.client.create(roleBindings, {
        apiVersion: roleBindings.apiVersion,
        kind: roleBindings.kind,
        metadata: { name: `${name}-${role}`, namespace },
        roleRef: { apiGroup: group, kind: "ClusterRole", name: `${operatorNamespace}-${role}` },
        subjects: [{ apiGroup: group, kind: "User", name }],
      }),
    ),
  );
  for (const role of roles) {
    await waitUntilEffective(server.client, { name: role, namespace, rules: [permissions[role]] }, { user: name });
  }
  return { name, client: await server.clientFor({ name }), credentials: await server.credentialsFor({ name }) };
}

/** The message with which the API server denies the request; undefined if it accepts it. */
export async function denial(request: Promise<unknown>): Promise<string | undefined> {
  try {
    await request;
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 422)) return error.explanation;
    throw error;
  }
}

/** Deletes all objects of a kind with one request, as `kubectl delete --raw` does. */
export async function deleteCollection(
  { credentials }: TestUser,
  { apiVersion, plural }: Resource,
  namespace: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetchTransport({
    method: "DELETE",
    url: `${credentials.server}/apis/${apiVersion}/namespaces/${namespace}/${plural}`,
    headers: {},
    tls: (await credentials.access()).tls,
    signal: AbortSignal.timeout(30_000),
    freshConnection: false,
  });
  return { status: response.status, text: await response.text() };
}

/** The API server enforces a new policy, and a new role, after a delay. */
export async function untilDenied(what: string, request: () => Promise<unknown>): Promise<void> {
  await waitFor(async () => (await denial(request())) !== undefined, { timeoutMs: 30_000, what });
}
