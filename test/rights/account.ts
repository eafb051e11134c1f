/**
 * A ServiceAccount with exactly the roles that the chart and the quickstart grant, so that every test that runs the
 * operator with it shows that these roles suffice.
 */
import { classRules, crdRules, metricsAuthRules, ownRules, servedRules, type Rule } from "@pko/install";
import {
  builtin,
  connect,
  isAlreadyExists,
  isNotFound,
  mayUser,
  resource,
  staticCredentials,
  type Client,
  type Credentials,
  type KubeObject,
  type Resource,
} from "@pko/kube";
import { kubeconfigText, patience, serviceAccountToken, waitFor } from "@pko/testkit";

interface AccountOptions {
  /** Credentials of a cluster admin, who creates the account. */
  readonly admin: Credentials;
  /** The operator's namespace. */
  readonly home: string;
  /** The namespaces that it watches, as in the chart's `watchNamespaces`; the whole cluster if absent. */
  readonly namespaces?: readonly string[];
  /** As with the chart's `rbac.createClusterRole: false`: the operator works without classes. */
  readonly withoutClasses?: true;
}

export interface OperatorAccount extends AsyncDisposable {
  /** With a token of the account. */
  readonly credentials: Credentials;
  /** The text of a kubeconfig with this token. */
  readonly kubeconfig: string;
  remove(): Promise<void>;
  /** For an account whose namespaces are removed, too. */
  removeFromCluster(): Promise<void>;
}

/** Returns when its roles are effective. */
export async function operatorAccount(options: AccountOptions): Promise<OperatorAccount> {
  const { admin, home } = options;
  const client = connect(admin, patience);
  const name = `operator-${crypto.randomUUID().slice(0, 8)}`;
  const grants = operatorGrants(options);
  await createRoles(admin, client, grants);
  const objects = [serviceAccount(name, home), ...grants.map((grant) => bindingTo({ name, home }, grant))];
  await Promise.all(objects.map(([resource, object]) => client.create(resource, object)));
  const token = await serviceAccountToken(client, { namespace: home, name }, 86_400);
  await Promise.all(grants.map((grant) => waitUntilEffective(client, grant, reviewedUser({ name, home }))));
  const removeObjects = async (removed: readonly Created[]): Promise<void> => {
    await Promise.all(removed.map(([resource, { metadata }]) => deleteIfFound(client, resource, metadata)));
  };
  const remove = (): Promise<void> => removeObjects(objects);
  const { ca = "" } = (await admin.access()).tls;
  const cluster = { server: admin.server, "certificate-authority-data": Buffer.from(ca).toString("base64") };
  return {
    credentials: staticCredentials({ server: admin.server, token, tls: { ca } }),
    kubeconfig: kubeconfigText({ cluster, user: { token } }),
    remove,
    removeFromCluster: () => removeObjects(objects.filter(([resource]) => !resource.namespaced)),
    [Symbol.asyncDispose]: remove,
  };
}

interface Identity {
  readonly name: string;
  readonly home: string;
}

interface Grant {
  /** Of the role, a ClusterRole: a RoleBinding grants its rules in one namespace. */
  readonly name: string;
  readonly rules: readonly Rule[];
  /** The whole cluster if absent. */
  readonly namespace?: string;
}

/** Like templates/rbac.yaml of the chart, but with one role for each scope: each object costs a scene several requests. */
function operatorGrants({ home, namespaces, withoutClasses }: AccountOptions): Grant[] {
  const inCluster = [...crdRules, ...(withoutClasses ? [] : classRules), ...metricsAuthRules];
  const rules = new Map<string | undefined, readonly Rule[]>([[home, ownRules]]);
  for (const scope of namespaces ?? [undefined]) rules.set(scope, [...(rules.get(scope) ?? []), ...servedRules]);
  rules.set(undefined, [...(rules.get(undefined) ?? []), ...inCluster]);
  return Array.from(rules, ([namespace, rules]) => ({
    name: roleName(rules),
    rules,
    ...(namespace !== undefined && { namespace }),
  }));
}

const roleName = (rules: readonly Rule[]): string => `operator-${Bun.hash(JSON.stringify(rules)).toString(36)}`;

const group = "rbac.authorization.k8s.io";

const rbacKind = (kind: string, plural: string): Resource =>
  resource<KubeObject>({ apiVersion: `${group}/v1`, kind, plural, namespaced: !kind.startsWith("Cluster") });

const clusterRoles = rbacKind("ClusterRole", "clusterroles");
const roleBindings = rbacKind("RoleBinding", "rolebindings");
const clusterRoleBindings = rbacKind("ClusterRoleBinding", "clusterrolebindings");

type Created = readonly [Resource, KubeObject];

const serviceAccount = (name: string, namespace: string): Created => [
  builtin.serviceAccounts,
  { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
];

function bindingTo({ name, home }: Identity, grant: Grant): Created {
  const binding = grant.namespace === undefined ? clusterRoleBindings : roleBindings;
  const { apiVersion, kind } = binding;
  const metadata = { name, ...(grant.namespace !== undefined && { namespace: grant.namespace }) };
  const roleRef = { apiGroup: group, kind: clusterRoles.kind, name: grant.name };
  const subjects = [{ kind: "ServiceAccount", name, namespace: home }];
  return [binding, { apiVersion, kind, metadata, roleRef, subjects } as KubeObject];
}

/** The names of the roles of a server, by its admin. */
const existing = new WeakMap<Credentials, Set<string>>();

/** The roles stay, so that later accounts only need bindings. The name of a role is a digest of its rules, so it always has these. */
async function createRoles(admin: Credentials, client: Client, grants: readonly Grant[]): Promise<void> {
  const known = existing.get(admin) ?? new Set();
  existing.set(admin, known);
  const missing = grants.filter(({ name }) => !known.has(name));
  await Promise.all(missing.map((grant) => createRole(client, grant)));
  for (const { name } of missing) known.add(name);
}

async function createRole(client: Client, { name, rules }: Grant): Promise<void> {
  const { apiVersion, kind } = clusterRoles;
  try {
    await client.create(clusterRoles, { apiVersion, kind, metadata: { name }, rules } as KubeObject);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

const reviewedUser = ({ name, home }: Identity): object => ({
  user: `system:serviceaccount:${home}:${name}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${home}`, "system:authenticated"],
});

/** The authorizer sees roles and bindings a moment after they are written. */
export async function waitUntilEffective(
  client: Client,
  { name, rules, namespace }: Grant,
  user: object,
): Promise<void> {
  const [rule] = rules;
  const resourceAttributes = {
    ...(namespace !== undefined && { namespace }),
    verb: rule?.verbs[0],
    group: rule?.apiGroups[0],
    resource: rule?.resources[0],
    name: rule?.resourceNames?.[0],
  };
  await waitFor(() => mayUser(client, { ...user, resourceAttributes }), { what: `${name} to be effective` });
}

async function deleteIfFound(client: Client, resource: Resource, metadata: KubeObject["metadata"]): Promise<void> {
  const { name = "", namespace } = metadata;
  try {
    await client.delete(resource, { name, ...(namespace !== undefined && { namespace }) });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
