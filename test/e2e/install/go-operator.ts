/**
 * What the Go operator v2.9 leaves in a cluster: Stacks with finalizer and status, Workspaces with StatefulSet, Service and
 * pod, Updates with finalizer, owners and conditions, each under the field manager that wrote it.
 */
import type { Kubectl } from "@pko/testkit";

const manager = "pulumi-kubernetes-operator";
const finalizer = "finalizer.stack.pulumi.com";

type Json = Readonly<Record<string, unknown>>;

interface Made {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly uid: string; readonly generation?: number };
}

export interface GoOperator {
  /** A Stack as its user wrote it, and as the operator marked it. */
  stack(name: string, spec: Json): Promise<Made>;
  program(name: string, program: Json): Promise<Made>;
  /** The Workspace of a Stack, with a pod that does nothing: nobody speaks its protocol any more. */
  workspace(stack: Made, spec: Json): Promise<Made>;
  update(workspace: Made, stack: Made, told: UpdateFacts): Promise<Made>;
  status(object: Made, writer: string, status: Json): Promise<void>;
}

interface UpdateFacts {
  readonly name: string;
  readonly spec?: Json;
  readonly status: Json;
  /** Whether its Stack has not noted its end yet. */
  readonly held: boolean;
}

/** As conditions and times are written. */
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

/** The three of an Update: it runs, it has succeeded, or it failed. */
export const runs = (): Json[] => [
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

export function goOperator(kubectl: Kubectl, namespace: string): GoOperator {
  const write = async (object: object, ...flags: readonly string[]): Promise<Made> => {
    const args = ["apply", "--server-side", "-f", "-", "-o", "json", ...flags];
    return JSON.parse(await kubectl(args, { input: JSON.stringify(object) })) as Made;
  };
  const own = (object: object): Promise<Made> => write(object, `--field-manager=${manager}`);
  const status: GoOperator["status"] = async ({ apiVersion, kind, metadata }, writer, told) => {
    const body = { apiVersion, kind, metadata: { name: metadata.name, namespace }, status: told };
    await write(body, "--subresource=status", `--field-manager=${manager}/${writer}`);
  };
  const hold = async ({ kind, metadata }: Made, by: string): Promise<void> => {
    const patch = JSON.stringify({ metadata: { finalizers: [finalizer] } });
    const what = ["patch", kind, metadata.name, "-n", namespace, "--type=merge", `--patch=${patch}`];
    await kubectl([...what, `--field-manager=${by}`]);
  };
  return {
    status,
    async stack(name, spec) {
      const made = await write({ apiVersion: "pulumi.com/v1", kind: "Stack", metadata: { name, namespace }, spec });
      await hold(made, manager);
      return made;
    },
    async program(name, program) {
      const made = await write({
        apiVersion: "pulumi.com/v1",
        kind: "Program",
        metadata: { name, namespace },
        program,
      });
      const path = `programs/${namespace}/${name}/1`;
      await status(made, "program-status", {
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
      return made;
    },
    async workspace(stack, spec) {
      const { name } = stack.metadata;
      const made = await own({
        apiVersion: "auto.pulumi.com/v1alpha1",
        kind: "Workspace",
        metadata: { name, namespace, labels: stackLabels(name), ownerReferences: [ownerOf(stack, true)] },
        spec: { podTemplate: { spec: { containers: [{ name: "pulumi" }] } }, ...spec },
      });
      await own(serviceOf(made, namespace));
      await own(statefulSetOf(made, namespace));
      await status(made, "workspace-status", {
        observedGeneration: made.metadata.generation,
        address: `${name}-workspace.${namespace}:50051`,
        pulumiVersion: "v3.258.0",
        conditions: [condition("Ready", "True", "Succeeded")],
      });
      return made;
    },
    async update(workspace, stack, told) {
      const made = await own({
        apiVersion: "auto.pulumi.com/v1alpha1",
        kind: "Update",
        metadata: {
          name: told.name,
          namespace,
          labels: stackLabels(stack.metadata.name),
          ownerReferences: [ownerOf(workspace, true), ownerOf(stack, false)],
        },
        spec: { workspaceName: workspace.metadata.name, type: "up", ttlAfterCompleted: "24h0m0s", ...told.spec },
      });
      if (told.held) await hold(made, `${manager}/stack-finalizer`);
      await status(made, "update-status", { observedGeneration: 1, ...told.status });
      return made;
    },
  };
}

const stackLabels = (name: string): Json => ({ "pulumi.com/component": "stack", "pulumi.com/stack-name": name });

const workspaceLabels = (name: string): Json => ({
  "auto.pulumi.com/component": "workspace",
  "auto.pulumi.com/workspace-name": name,
});

const ownerOf = ({ apiVersion, kind, metadata: { name, uid } }: Made, controller: boolean): Json => ({
  apiVersion,
  kind,
  name,
  uid,
  blockOwnerDeletion: true,
  ...(controller && { controller }),
});

function serviceOf(workspace: Made, namespace: string): object {
  const { name } = workspace.metadata;
  const labels = workspaceLabels(name);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `${name}-workspace`, namespace, labels, ownerReferences: [ownerOf(workspace, true)] },
    spec: { clusterIP: "None", selector: labels, ports: [{ name: "grpc", port: 50_051 }] },
  };
}

function statefulSetOf(workspace: Made, namespace: string): object {
  const { name } = workspace.metadata;
  const labels = workspaceLabels(name);
  const share = [{ name: "share", mountPath: "/share" }];
  const image = "docker.io/library/busybox:latest";
  const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: `${name}-workspace`, namespace, labels, ownerReferences: [ownerOf(workspace, true)] },
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
