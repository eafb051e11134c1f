/**
 * Objects as the Go operator v2.9 leaves them in a cluster: Stacks, Programs, Workspaces with StatefulSet and Service, and
 * Updates, each with its finalizers, owner references, status and field managers.
 */
import type { Kubectl } from "@pko/testkit";

import { servedKind, type Place } from "../harness/cluster.ts";

const manager = "pulumi-kubernetes-operator";
const finalizer = "finalizer.stack.pulumi.com";

type Json = Readonly<Record<string, unknown>>;

interface Created {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly uid: string; readonly generation?: number };
}

export interface GoOperator {
  /** With the operator's finalizer. */
  stack(name: string, spec: Json): Promise<Created>;
  program(name: string, program: Json): Promise<Created>;
  /** The pod does nothing, because the new operator does not speak its protocol. */
  workspace(stack: Created, spec: Json): Promise<Created>;
  update(workspace: Created, stack: Created, update: UpdateFields): Promise<Created>;
  status(object: Created, writer: string, status: Json): Promise<void>;
}

interface UpdateFields {
  readonly name: string;
  readonly spec?: Json;
  readonly status: Json;
  /** The finalizer stays until the Stack has recorded the result. */
  readonly hasFinalizer: boolean;
}

/** In the format of Kubernetes timestamps. */
export const timeAgo = (seconds: number): string =>
  new Date(Date.now() - seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");

export const condition = (type: string, status: "True" | "False", reason: string): Json => ({
  type,
  status,
  reason,
  message: "",
  lastTransitionTime: timeAgo(3600),
  observedGeneration: 1,
});

/** Conditions of an Update that is running, has succeeded or was aborted. */
export const running = (): Json[] => [
  condition("Progressing", "True", "Progressing"),
  condition("Failed", "False", "Progressing"),
  condition("Complete", "False", "Progressing"),
];
export const succeeded = (): Json[] => [
  condition("Progressing", "False", "Complete"),
  condition("Failed", "False", "UpdateSucceeded"),
  condition("Complete", "True", "Updated"),
];
export const aborted = (): Json[] => [
  condition("Progressing", "False", "Failed"),
  condition("Failed", "True", "Aborted"),
  condition("Complete", "True", "Failed"),
];

export function goOperator(kubectl: Kubectl, { client, namespace }: Place): GoOperator {
  const write = async (object: object, ...flags: readonly string[]): Promise<Created> => {
    const args = ["apply", "--server-side", "-f", "-", "-o", "json", ...flags];
    return JSON.parse(await kubectl(args, { input: JSON.stringify(object) })) as Created;
  };
  const applyAsOperator = (object: object): Promise<Created> => write(object, `--field-manager=${manager}`);
  const status: GoOperator["status"] = async ({ apiVersion, kind, metadata }, writer, value) => {
    const body = { apiVersion, kind, metadata: { name: metadata.name, namespace }, status: value };
    // `kubectl apply` of older versions does not know subresources.
    const options = { fieldManager: `${manager}/${writer}`, subresource: "status" } as const;
    await client.apply(servedKind(body, { namespaced: true }), body, options);
  };
  const addFinalizer = async ({ kind, metadata }: Created, fieldManager: string): Promise<void> => {
    const patch = JSON.stringify({ metadata: { finalizers: [finalizer] } });
    const command = ["patch", kind, metadata.name, "-n", namespace, "--type=merge", `--patch=${patch}`];
    await kubectl([...command, `--field-manager=${fieldManager}`]);
  };
  return {
    status,
    async stack(name, spec) {
      const created = await write({ apiVersion: "pulumi.com/v1", kind: "Stack", metadata: { name, namespace }, spec });
      await addFinalizer(created, manager);
      return created;
    },
    async program(name, program) {
      const created = await write({
        apiVersion: "pulumi.com/v1",
        kind: "Program",
        metadata: { name, namespace },
        program,
      });
      const path = `programs/${namespace}/${name}/1`;
      await status(created, "program-status", {
        observedGeneration: 1,
        artifact: {
          path: `${path}.tar.gz`,
          url: `http://pulumi-kubernetes-operator.pulumi-kubernetes-operator/${path}`,
          revision: "1",
          digest: `sha256:${"ab".repeat(32)}`,
          lastUpdateTime: timeAgo(3600),
          size: 512,
        },
      });
      return created;
    },
    async workspace(stack, spec) {
      const { name } = stack.metadata;
      const created = await applyAsOperator({
        apiVersion: "auto.pulumi.com/v1alpha1",
        kind: "Workspace",
        metadata: { name, namespace, labels: stackLabels(name), ownerReferences: [ownerReference(stack, true)] },
        spec: { podTemplate: { spec: { containers: [{ name: "pulumi" }] } }, ...spec },
      });
      await applyAsOperator(newService(created, namespace));
      await applyAsOperator(newStatefulSet(created, namespace));
      await status(created, "workspace-status", {
        observedGeneration: created.metadata.generation,
        address: `${name}-workspace.${namespace}:50051`,
        pulumiVersion: "v3.258.0",
        conditions: [condition("Ready", "True", "Succeeded")],
      });
      return created;
    },
    async update(workspace, stack, { name, spec, hasFinalizer, status: value }) {
      const created = await applyAsOperator({
        apiVersion: "auto.pulumi.com/v1alpha1",
        kind: "Update",
        metadata: {
          name,
          namespace,
          labels: stackLabels(stack.metadata.name),
          ownerReferences: [ownerReference(workspace, true), ownerReference(stack, false)],
        },
        spec: { workspaceName: workspace.metadata.name, type: "up", ttlAfterCompleted: "24h0m0s", ...spec },
      });
      if (hasFinalizer) await addFinalizer(created, `${manager}/stack-finalizer`);
      await status(created, "update-status", { observedGeneration: 1, ...value });
      return created;
    },
  };
}

const stackLabels = (name: string): Json => ({ "pulumi.com/component": "stack", "pulumi.com/stack-name": name });

const workspaceLabels = (name: string): Json => ({
  "auto.pulumi.com/component": "workspace",
  "auto.pulumi.com/workspace-name": name,
});

const ownerReference = ({ apiVersion, kind, metadata: { name, uid } }: Created, controller: boolean): Json => ({
  apiVersion,
  kind,
  name,
  uid,
  blockOwnerDeletion: true,
  ...(controller && { controller }),
});

function newService(workspace: Created, namespace: string): object {
  const { name } = workspace.metadata;
  const labels = workspaceLabels(name);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `${name}-workspace`, namespace, labels, ownerReferences: [ownerReference(workspace, true)] },
    spec: { clusterIP: "None", selector: labels, ports: [{ name: "grpc", port: 50_051 }] },
  };
}

function newStatefulSet(workspace: Created, namespace: string): object {
  const { name } = workspace.metadata;
  const labels = workspaceLabels(name);
  const share = [{ name: "share", mountPath: "/share" }];
  const image = "docker.io/library/busybox:latest";
  const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: `${name}-workspace`, namespace, labels, ownerReferences: [ownerReference(workspace, true)] },
    spec: {
      selector: { matchLabels: labels },
      serviceName: `${name}-workspace`,
      replicas: 1,
      podManagementPolicy: "Parallel",
      template: {
        metadata: { labels, annotations: { "auto.pulumi.com/revision-hash": "0123456789abcdef" } },
        spec: {
          serviceAccountName: "pulumi",
          terminationGracePeriodSeconds: 1,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 1000,
            runAsGroup: 1000,
            seccompProfile: { type: "RuntimeDefault" },
          },
          initContainers: [{ name: "bootstrap", image, command: ["true"], volumeMounts: share, securityContext }],
          containers: [
            {
              name: "pulumi",
              image,
              command: ["sleep", "1000000"],
              ports: [{ name: "grpc", containerPort: 50_051 }],
              volumeMounts: share,
              securityContext,
            },
          ],
          volumes: [{ name: "share", emptyDir: {} }],
        },
      },
    },
  };
}
