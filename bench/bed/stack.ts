/** The Stacks and Programs of the benchmark. Pure. */
import type { KubeObject } from "@pko/kube";

import type { Program, Stack } from "./kinds.ts";

export const stateFolder = "/state";
export const stateClaim = "bench-state";
export const serviceAccount = "bench";
/** Contains the script that replaces the CLI if a scenario records or holds its calls. */
export const shimConfigMap = "bench-shim";
export const shimFolder = "/bench/bin";

export const environment = {
  PULUMI_BACKEND_URL: `file://${stateFolder}`,
  PULUMI_CONFIG_PASSPHRASE: "bench",
} as const;

export interface StackSettings {
  readonly namespace: string;
  readonly name: string;
  /** `programRef` or the fields of a repository. */
  readonly source: Readonly<Record<string, unknown>>;
  /** Becomes the output `value`. */
  readonly value?: string;
  readonly destroyOnFinalize?: boolean;
  readonly reclaim?: "Retain" | "Delete";
  /** A PATH that starts with the shim. */
  readonly path?: string;
  /** Additional fields of `spec.workspaceTemplate.spec`, for example those of one operator. */
  readonly workspace?: Readonly<Record<string, unknown>>;
  /** The requests of the container; the operator's default if absent. */
  readonly requests?: { readonly cpu: string; readonly memory: string };
}

export function stackObject(settings: StackSettings): Stack {
  const { namespace, name, source, value, destroyOnFinalize, reclaim } = settings;
  const literal = (text: string): object => ({ type: "Literal", literal: { value: text } });
  return {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name, namespace },
    spec: {
      stack: name,
      serviceAccountName: serviceAccount,
      ...source,
      envRefs: Object.fromEntries(Object.entries(environment).map(([key, text]) => [key, literal(text)])),
      ...(value !== undefined && { config: { value } }),
      ...(destroyOnFinalize && { destroyOnFinalize }),
      ...(reclaim && { workspaceReclaimPolicy: reclaim }),
      workspaceTemplate: { spec: workspaceSpec(settings) },
    },
  };
}

function workspaceSpec({ path, requests, workspace }: StackSettings): object {
  const state = { name: "state", mountPath: stateFolder };
  const shim = { name: "shim", mountPath: shimFolder };
  return {
    ...workspace,
    ...(requests && { resources: { requests } }),
    podTemplate: {
      spec: {
        // The termination of pods is not measured.
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: "pulumi",
            ...(path !== undefined && { env: [{ name: "PATH", value: path }] }),
            volumeMounts: path === undefined ? [state] : [state, shim],
          },
        ],
        volumes: [
          { name: "state", persistentVolumeClaim: { claimName: stateClaim } },
          ...(path === undefined ? [] : [{ name: "shim", configMap: { name: shimConfigMap, defaultMode: 0o755 } }]),
        ],
      },
    },
  };
}

export interface ProgramSettings {
  readonly namespace: string;
  readonly name: string;
  /** Becomes the output `text`. */
  readonly text: string;
}

/** One resource without a provider, and outputs that show which update has succeeded. */
export function programObject({ namespace, name, text }: ProgramSettings): Program {
  return {
    apiVersion: "pulumi.com/v1",
    kind: "Program",
    metadata: { name, namespace },
    program: programBody(text),
  };
}

function programBody(text: string): Record<string, unknown> {
  return {
    configuration: { value: { type: "String", default: "none" } },
    resources: { kept: { type: "pulumi:index:Stash", properties: { input: text } } },
    // Not the resource's output, which keeps its first value.
    outputs: { text, value: "${value}" },
  };
}

/** The same program as a project file, for repositories and for the bare CLI. JSON is YAML. */
export function projectFile(text: string): string {
  return JSON.stringify({ name: "bench", runtime: "yaml", ...programBody(text) }, undefined, 2);
}

/**
 * A wrapper of the CLI. It records each call: start and end in nanoseconds, then the command. While the file `hold` exists,
 * an `up` waits for the file `release`.
 */
export function shimScript(realPath: string): string {
  return `#!/bin/sh
PATH='${realPath}'
export PATH
calls='${stateFolder}/calls'
case " $* " in *' up '*) isUp=yes ;; *) isUp= ;; esac
if [ -n "$isUp" ] && [ -e '${stateFolder}/hold' ]; then
  while [ ! -e '${stateFolder}/release' ]; do sleep 1; done
fi
begin=$(date +%s%N)
pulumi "$@"
code=$?
read -r host < /etc/hostname
mkdir -p "$calls"
echo "$begin $(date +%s%N) $*" >> "$calls/$host"
exit $code
`;
}

/** Marks a namespace that the benchmark has created and may delete. */
export const bedLabel = "pulumi.com/bench";

export function bedObjects(namespace: string): KubeObject[] {
  return [
    {
      apiVersion: "v1",
      kind: "Namespace",
      // The meter reads the processes of its node.
      metadata: { name: namespace, labels: { [bedLabel]: "true", "pod-security.kubernetes.io/enforce": "privileged" } },
    },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: serviceAccount, namespace } },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: `${namespace}:${serviceAccount}:system:auth-delegator` },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:auth-delegator" },
      subjects: [{ kind: "ServiceAccount", namespace, name: serviceAccount }],
    } as KubeObject,
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: stateClaim, namespace },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    } as KubeObject,
  ];
}
