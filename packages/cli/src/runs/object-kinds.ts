/** The kinds of objects that `trace` can read, by the names that kubectl accepts. Others are only searched in records. */

export interface ObjectKind {
  readonly kind: string;
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

const kind = (apiVersion: string, name: string, plural: string, namespaced = true): ObjectKind => ({
  kind: name,
  apiVersion,
  plural,
  namespaced,
});

const rbac = "rbac.authorization.k8s.io/v1";

const kinds: readonly (readonly [ObjectKind, ...string[]])[] = [
  [kind("v1", "Pod", "pods"), "po"],
  [kind("v1", "Service", "services"), "svc"],
  [kind("v1", "ConfigMap", "configmaps"), "cm"],
  [kind("v1", "Secret", "secrets")],
  [kind("v1", "ServiceAccount", "serviceaccounts"), "sa"],
  [kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"), "pvc"],
  [kind("v1", "PersistentVolume", "persistentvolumes", false), "pv"],
  [kind("v1", "Namespace", "namespaces", false), "ns"],
  [kind("apps/v1", "Deployment", "deployments"), "deploy"],
  [kind("apps/v1", "ReplicaSet", "replicasets"), "rs"],
  [kind("apps/v1", "StatefulSet", "statefulsets"), "sts"],
  [kind("apps/v1", "DaemonSet", "daemonsets"), "ds"],
  [kind("batch/v1", "Job", "jobs")],
  [kind("batch/v1", "CronJob", "cronjobs"), "cj"],
  [kind("networking.k8s.io/v1", "Ingress", "ingresses"), "ing"],
  [kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"), "netpol"],
  [kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"), "hpa"],
  [kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"), "pdb"],
  [kind(rbac, "Role", "roles")],
  [kind(rbac, "RoleBinding", "rolebindings")],
  [kind(rbac, "ClusterRole", "clusterroles", false)],
  [kind(rbac, "ClusterRoleBinding", "clusterrolebindings", false)],
];

const byName = new Map(
  kinds.flatMap(([each, ...short]) =>
    [each.kind.toLowerCase(), each.plural, ...short].map((name) => [name, each] as const),
  ),
);

/** `Deployment`, `deployments`, `deploy` and `deployments.apps` are the same. */
export const objectKind = (name: string): ObjectKind | undefined => byName.get(name.toLowerCase().split(".")[0] ?? "");
