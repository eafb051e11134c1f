/** The built-in kinds that controllers use. */
import type { Deployment, StatefulSet } from "kubernetes-types/apps/v1";
import type { Lease } from "kubernetes-types/coordination/v1";
import type {
  ConfigMap,
  Namespace,
  PersistentVolumeClaim,
  Pod,
  Secret,
  Service,
  ServiceAccount,
} from "kubernetes-types/core/v1";
import type { Event } from "kubernetes-types/events/v1";

import { resource, type KubeObject, type Resource } from "../resource.ts";

/** A type of kubernetes-types in which `apiVersion`, `kind` and `metadata` are required, as in every API response. */
export type ApiObject<T> = Omit<T, keyof KubeObject> & KubeObject;

function namespaced<T>(apiVersion: string, kind: string, plural: string): Resource<ApiObject<T>> {
  return resource<ApiObject<T>>({ apiVersion, kind, plural, namespaced: true });
}

export const builtin = {
  namespaces: resource<ApiObject<Namespace>>({
    apiVersion: "v1",
    kind: "Namespace",
    plural: "namespaces",
    namespaced: false,
  }),
  configMaps: namespaced<ConfigMap>("v1", "ConfigMap", "configmaps"),
  secrets: namespaced<Secret>("v1", "Secret", "secrets"),
  persistentVolumeClaims: namespaced<PersistentVolumeClaim>("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
  pods: namespaced<Pod>("v1", "Pod", "pods"),
  services: namespaced<Service>("v1", "Service", "services"),
  serviceAccounts: namespaced<ServiceAccount>("v1", "ServiceAccount", "serviceaccounts"),
  statefulSets: namespaced<StatefulSet>("apps/v1", "StatefulSet", "statefulsets"),
  deployments: namespaced<Deployment>("apps/v1", "Deployment", "deployments"),
  leases: namespaced<Lease>("coordination.k8s.io/v1", "Lease", "leases"),
  events: namespaced<Event>("events.k8s.io/v1", "Event", "events"),
} as const;
