/** Objects that tests apply. They have no namespace; `applyTo` sets it. */
import { givenKubeconfig } from "@pko/cluster";

/**
 * The node has two cores, on which the pods of several test files run at the same time. With the default request of 100m, twenty of them
 * fill it, and the operator then preempts idle pods that a test may need.
 */
export const smallResources = { requests: { cpu: "10m" } } as const;

/** Contains the SDK that programs in JavaScript need. The default image of the local cluster does, too; that of Docker Hub does not. */
const imageWithSdk = givenKubeconfig && process.env["WORKSPACE_IMAGE"];

/** Fields of the workspaces of all Stacks. */
export const smallWorkspace = { resources: smallResources, ...(imageWithSdk && { image: imageWithSdk }) } as const;

/** Fields of a Stack with a file backend on the namespace's volume. */
export const onFileBackend = {
  serviceAccountName: "pulumi",
  envRefs: {
    PULUMI_BACKEND_URL: literal("file:///state"),
    PULUMI_CONFIG_PASSPHRASE: literal("passphrase"),
  },
  workspaceTemplate: {
    spec: {
      ...smallWorkspace,
      podTemplate: {
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: "pulumi", volumeMounts: [{ name: "state", mountPath: "/state" }] }],
          volumes: [{ name: "state", persistentVolumeClaim: { claimName: "state" } }],
        },
      },
    },
  },
} as const;

/** A Stack on the file backend. */
export function newStack(name: string, spec: object): object {
  return newStackWithoutBackend(name, { ...onFileBackend, stack: name, ...spec });
}

/**
 * The repository is polled only when an update is requested. Otherwise the operator may find a commit before the test requests its
 * update, and then runs it twice.
 */
export const onlyOnRequest = { resyncFrequencySeconds: 86_400 } as const;

/** A Stack on the file backend that destroys its resources when it is deleted. */
export function newStackWithDestroy(name: string, spec: object): object {
  return newStack(name, { destroyOnFinalize: true, ...spec });
}

/** A Stack whose spec sets the backend. Its pods terminate quickly, so that tests do not wait for them. */
export function newStackWithoutBackend(name: string, spec: object): object {
  const workspaceTemplate = {
    spec: { ...smallWorkspace, podTemplate: { spec: { terminationGracePeriodSeconds: 1 } } },
  };
  return {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name },
    spec: { serviceAccountName: "pulumi", workspaceTemplate, ...spec },
  };
}

export function newProgram(name: string, sections: object): object {
  return { apiVersion: "pulumi.com/v1", kind: "Program", metadata: { name }, program: sections };
}

export function newSecret(name: string, stringData: Readonly<Record<string, string>>): object {
  return { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData };
}

export function newConfigMap(name: string, data: Readonly<Record<string, string>>): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
}

export function newServiceAccount(name: string): object {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: { name } };
}

export function literal(value: string): object {
  return { type: "Literal", literal: { value } };
}

export function fromSecret(name: string, key: string): object {
  return { type: "Secret", secret: { name, key } };
}

/** Additions to the pod of `onFileBackend`. */
interface PodChange {
  /** Fields of the `pulumi` container. */
  readonly container?: object;
  /** Containers before the `pulumi` container. */
  readonly sidecars?: readonly object[];
  readonly mounts?: readonly object[];
  readonly volumes?: readonly object[];
  readonly initContainers?: readonly object[];
}

/** The workspace template of `onFileBackend`, with additions to its pod. */
export function podWith({ container = {}, sidecars = [], mounts = [], volumes = [], initContainers }: PodChange) {
  const { spec } = onFileBackend.workspaceTemplate.spec.podTemplate;
  const [pulumi] = spec.containers;
  const pod = {
    ...spec,
    containers: [...sidecars, { ...pulumi, volumeMounts: [...pulumi.volumeMounts, ...mounts], ...container }],
    volumes: [...spec.volumes, ...volumes],
    ...(initContainers && { initContainers }),
  };
  return { spec: { ...smallWorkspace, podTemplate: { spec: pod } } };
}
