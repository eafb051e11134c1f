/** The kinds of objects that `trace` can read, by the names that kubectl accepts. Others are only searched in records. */

export interface ObjectKind {
  readonly kind: string;
  readonly apiVersion: string;
}

const rbac = "rbac.authorization.k8s.io/v1";

type Row = readonly [apiVersion: string, kind: string, plural: string, ...short: string[]];

const kinds: readonly Row[] = [
  ["v1", "Pod", "pods", "po"],
  ["v1", "Service", "services", "svc"],
  ["v1", "ConfigMap", "configmaps", "cm"],
  ["v1", "Secret", "secrets"],
  ["v1", "ServiceAccount", "serviceaccounts", "sa"],
  ["v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc"],
  ["apps/v1", "Deployment", "deployments", "deploy"],
  ["apps/v1", "ReplicaSet", "replicasets", "rs"],
  ["apps/v1", "StatefulSet", "statefulsets", "sts"],
  ["apps/v1", "DaemonSet", "daemonsets", "ds"],
  ["batch/v1", "Job", "jobs"],
  ["batch/v1", "CronJob", "cronjobs", "cj"],
  ["networking.k8s.io/v1", "Ingress", "ingresses", "ing"],
  ["networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "netpol"],
  ["autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"],
  ["policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb"],
  [rbac, "Role", "roles"],
  [rbac, "RoleBinding", "rolebindings"],
  ["v1", "Namespace", "namespaces", "ns"],
  ["v1", "PersistentVolume", "persistentvolumes", "pv"],
  [rbac, "ClusterRole", "clusterroles"],
  [rbac, "ClusterRoleBinding", "clusterrolebindings"],
];

const byName = new Map(
  kinds.flatMap(([apiVersion, kind, ...others]) =>
    [kind.toLowerCase(), ...others].map((name): [string, ObjectKind] => [name, { apiVersion, kind }]),
  ),
);

/** `Deployment`, `deployments`, `deploy` and `deployments.apps` are the same. */
export const objectKind = (name: string): ObjectKind | undefined => byName.get(name.toLowerCase().split(".")[0] ?? "");
