/** The part of the API that the benchmark reads, which is the same for every operator of this API. */
import { builtin, resource, type KubeObject, type ApiObject } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";
import type { StatefulSet } from "kubernetes-types/apps/v1";

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
}

interface StackStatus {
  readonly conditions?: readonly Condition[];
  readonly observedGeneration?: number;
  readonly lastUpdate?: {
    readonly state?: string;
    readonly generation?: number;
    readonly reconcileRequest?: string;
    readonly lastSuccessfulCommit?: string;
  };
  readonly outputs?: Readonly<Record<string, unknown>>;
}

export interface Stack extends KubeObject {
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: StackStatus;
}

export interface Program extends KubeObject {
  readonly program: Readonly<Record<string, unknown>>;
}

export interface Workspace extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] };
}

export interface Update extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[]; readonly startTime?: string };
}

export const stacks = resource<Stack>({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  plural: "stacks",
  namespaced: true,
});
export const programs = resource<Program>({
  apiVersion: "pulumi.com/v1",
  kind: "Program",
  plural: "programs",
  namespaced: true,
});
export const workspaces = resource<Workspace>({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Workspace",
  plural: "workspaces",
  namespaced: true,
});
export const updates = resource<Update>({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  plural: "updates",
  namespaced: true,
});
export const { pods, statefulSets } = builtin;
export type KnownPod = ApiObject<Pod>;
export type KnownStatefulSet = ApiObject<StatefulSet>;

interface Conditioned {
  readonly status?: { readonly conditions?: readonly Condition[] } | undefined;
}

function findCondition({ status }: Conditioned, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

export const isTrue = (object: Conditioned, type: string): boolean => findCondition(object, type)?.status === "True";

export const ownerUids = ({ metadata }: KubeObject): string[] => (metadata.ownerReferences ?? []).map(({ uid }) => uid);
