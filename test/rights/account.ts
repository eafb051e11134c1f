/**
 * A ServiceAccount with exactly the roles that chart and quickstart give the operator, so that every test that runs the
 * operator with it shows that these roles suffice.
 */
import { crdRules, metricsAuthRules, ownRules, servedRules, type Rule } from "@pko/install";
import {
  builtin,
  connect,
  isNotFound,
  resource,
  staticCredentials,
  type Client,
  type Credentials,
  type KubeObject,
  type Resource,
} from "@pko/kube";
import { kubeconfigText, serviceAccountToken, waitFor } from "@pko/testkit";

interface AccountOptions {
  /** Of a cluster admin, who creates the account. */
  readonly admin: Credentials;
  /** The operator's own namespace. */
  readonly home: string;
  /** The namespaces that it serves, as `watchNamespaces` of the chart names them; the whole cluster when absent. */
  readonly namespaces?: readonly string[];
}

export interface OperatorAccount extends AsyncDisposable {
  /** A token of the account. */
  readonly credentials: Credentials;
  /** The text of a kubeconfig with it. */
  readonly kubeconfig: string;
  remove(): Promise<void>;
}

/** Returns when its roles are in force. */
export async function operatorAccount(options: AccountOptions): Promise<OperatorAccount> {
  const { admin, home } = options;
  const client = connect(admin);
  const name = `operator-${crypto.randomUUID().slice(0, 8)}`;
  const grants = grantsOf(name, options);
  const objects = [serviceAccount(name, home), ...grants.flatMap((grant) => roleAndBinding(grant, { name, home }))];
  await Promise.all(objects.map(([resource, object]) => client.create(resource, object)));
  const token = await serviceAccountToken(client, { namespace: home, name }, 86_400);
  await Promise.all(grants.map((grant) => inForce(client, grant, userOf({ name, home }))));
  const remove = async (): Promise<void> => {
    await Promise.all(objects.map(([resource, { metadata }]) => removed(client, resource, metadata)));
  };
  const { ca = "" } = (await admin.access()).tls;
  const cluster = { server: admin.server, "certificate-authority-data": Buffer.from(ca).toString("base64") };
  return {
    credentials: staticCredentials({ server: admin.server, token, tls: { ca } }),
    kubeconfig: kubeconfigText({ cluster, user: { token } }),
    remove,
    [Symbol.asyncDispose]: remove,
  };
}

interface Identity {
  readonly name: string;
  readonly home: string;
}

interface Grant {
  readonly name: string;
  readonly rules: readonly Rule[];
  /** The whole cluster when absent. */
  readonly namespace?: string;
}

/** As templates/rbac.yaml of the chart. */
function grantsOf(name: string, { home, namespaces }: AccountOptions): Grant[] {
  const served = { name: `${name}-served`, rules: servedRules };
  return [
    { name: `${name}-own`, rules: ownRules, namespace: home },
    ...(namespaces?.map((namespace) => ({ ...served, namespace })) ?? [served]),
    { name: `${name}-crds`, rules: crdRules },
    { name: `${name}-metrics-auth`, rules: metricsAuthRules },
  ];
}

const group = "rbac.authorization.k8s.io";

const kindOf = (kind: string, plural: string): Resource =>
  resource<KubeObject>({ apiVersion: `${group}/v1`, kind, plural, namespaced: !kind.startsWith("Cluster") });

const inNamespace = [kindOf("Role", "roles"), kindOf("RoleBinding", "rolebindings")] as const;
const inCluster = [kindOf("ClusterRole", "clusterroles"), kindOf("ClusterRoleBinding", "clusterrolebindings")] as const;

type Created = readonly [Resource, KubeObject];

const serviceAccount = (name: string, namespace: string): Created => [
  builtin.serviceAccounts,
  { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
];

function roleAndBinding({ name, rules, namespace }: Grant, account: Identity): Created[] {
  const [role, binding] = namespace === undefined ? inCluster : inNamespace;
  const metadata = { name, ...(namespace !== undefined && { namespace }) };
  const roleRef = { apiGroup: group, kind: role.kind, name };
  const subjects = [{ kind: "ServiceAccount", name: account.name, namespace: account.home }];
  const of = (kind: Resource, more: object): KubeObject => ({
    apiVersion: kind.apiVersion,
    kind: kind.kind,
    metadata,
    ...more,
  });
  return [
    [role, of(role, { rules })],
    [binding, of(binding, { roleRef, subjects })],
  ];
}

const userOf = ({ name, home }: Identity): object => ({
  user: `system:serviceaccount:${home}:${name}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${home}`, "system:authenticated"],
});

interface AccessReview extends KubeObject {
  readonly spec: object;
  readonly status?: { readonly allowed?: boolean };
}

const accessReviews = resource<AccessReview>({
  apiVersion: "authorization.k8s.io/v1",
  kind: "SubjectAccessReview",
  plural: "subjectaccessreviews",
  namespaced: false,
});

/** The authorizer reads roles and bindings a moment after they are written. */
async function inForce(client: Client, { name, rules, namespace }: Grant, user: object): Promise<void> {
  const [rule] = rules;
  const resourceAttributes = {
    ...(namespace !== undefined && { namespace }),
    verb: rule?.verbs[0],
    group: rule?.apiGroups[0],
    resource: rule?.resources[0],
    name: rule?.resourceNames?.[0],
  };
  const { apiVersion, kind } = accessReviews;
  const review = { apiVersion, kind, metadata: {}, spec: { ...user, resourceAttributes } };
  await waitFor(async () => (await client.create(accessReviews, review)).status?.allowed, {
    what: `${name} to be in force`,
  });
}

async function removed(client: Client, resource: Resource, metadata: KubeObject["metadata"]): Promise<void> {
  const { name = "", namespace } = metadata;
  try {
    await client.delete(resource, { name, ...(namespace !== undefined && { namespace }) });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
