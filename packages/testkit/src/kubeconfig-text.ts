/** A kubeconfig with one context. JSON is YAML. */
export function kubeconfigText({ cluster, user }: { readonly cluster: object; readonly user: object }): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "testkit", cluster }],
    users: [{ name: "testkit", user }],
    contexts: [{ name: "testkit", context: { cluster: "testkit", user: "testkit" } }],
    "current-context": "testkit",
  });
}
