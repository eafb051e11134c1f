/** A service account with the operator's rights and no more, so that every test shows that they suffice. */
import { ownRules, servedRules, type Rule } from "@pko/api";
import { kubeconfigText, type Kubectl } from "@pko/testkit";

interface AccountOptions {
  readonly kubectl: Kubectl;
  /** Where the operator keeps what is its own. */
  readonly home: string;
  /** The namespaces that it has rights in; all of them when absent. */
  readonly namespaces?: readonly string[];
  /** Another way to the API server, such as through a proxy. */
  readonly cluster?: object;
}

interface Account {
  /** The text of its kubeconfig. */
  readonly kubeconfig: string;
  remove(): Promise<void>;
}

export async function operatorAccount(options: AccountOptions): Promise<Account> {
  const { kubectl, home, namespaces } = options;
  const name = `operator-${crypto.randomUUID().slice(0, 8)}`;
  const subjects = [{ kind: "ServiceAccount", name, namespace: home }];
  const items = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace: home } },
    ...granted({ metadata: { name: `${name}-own`, namespace: home }, rules: ownRules, subjects }),
    ...(namespaces?.flatMap((namespace) => granted({ metadata: { name, namespace }, rules: servedRules, subjects })) ??
      granted({ metadata: { name }, rules: servedRules, subjects })),
  ];
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await kubectl(["apply", "-f", "-"], { input });
  const token = (await kubectl(["create", "token", name, "-n", home, "--duration=24h"])).trim();
  return {
    kubeconfig: kubeconfigText({ cluster: options.cluster ?? (await clusterOf(kubectl)), user: { token } }),
    remove: async () => void (await kubectl(["delete", "--ignore-not-found", "--wait=false", "-f", "-"], { input })),
  };
}

interface Grant {
  /** Without a namespace, for the whole cluster. */
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules: readonly Rule[];
  readonly subjects: readonly object[];
}

function granted({ metadata, rules, subjects }: Grant): object[] {
  const apiGroup = "rbac.authorization.k8s.io";
  const apiVersion = `${apiGroup}/v1`;
  const kind = metadata.namespace === undefined ? "ClusterRole" : "Role";
  return [
    { apiVersion, kind, metadata, rules },
    { apiVersion, kind: `${kind}Binding`, metadata, roleRef: { apiGroup, kind, name: metadata.name }, subjects },
  ];
}

async function clusterOf(kubectl: Kubectl): Promise<object> {
  const text = await kubectl(["config", "view", "--raw", "--minify", "-o", "json"]);
  const { clusters } = JSON.parse(text) as { clusters: { cluster: object }[] };
  const [first] = clusters;
  if (!first) throw new Error("the kubeconfig names no cluster");
  return first.cluster;
}
