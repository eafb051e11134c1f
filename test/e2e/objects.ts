/** Objects that tests apply. They name no namespace: `applyTo` puts them where they belong. */

/** What every Stack here shares: a file backend on the namespace's volume, and its passphrase. */
export const onFileBackend = {
  serviceAccountName: "pulumi",
  envRefs: {
    PULUMI_BACKEND_URL: literal("file:///state"),
    PULUMI_CONFIG_PASSPHRASE: literal("passphrase"),
  },
  workspaceTemplate: {
    spec: {
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

/** On the file backend. */
export function stackOf(name: string, spec: object): object {
  return stackElsewhere(name, { ...onFileBackend, stack: name, ...spec });
}

/** On a backend that its spec names. Brief ends for pods, so that a test does not wait for them. */
export function stackElsewhere(name: string, spec: object): object {
  const workspaceTemplate = { spec: { podTemplate: { spec: { terminationGracePeriodSeconds: 1 } } } };
  return {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name },
    spec: { serviceAccountName: "pulumi", workspaceTemplate, ...spec },
  };
}

export function programOf(name: string, sections: object): object {
  return { apiVersion: "pulumi.com/v1", kind: "Program", metadata: { name }, program: sections };
}

export function secretOf(name: string, stringData: Readonly<Record<string, string>>): object {
  return { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData };
}

export function configMapOf(name: string, data: Readonly<Record<string, string>>): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
}

export function serviceAccountOf(name: string): object {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: { name } };
}

/** References, as the fields of a Stack have them. */
export function literal(value: string): object {
  return { type: "Literal", literal: { value } };
}

export function fromSecret(name: string, key: string): object {
  return { type: "Secret", secret: { name, key } };
}

/** What a test adds to the pod of `onFileBackend`. */
interface PodChange {
  /** Of the container that runs Pulumi. */
  readonly container?: object;
  /** They come before it. */
  readonly sidecars?: readonly object[];
  readonly mounts?: readonly object[];
  readonly volumes?: readonly object[];
  readonly initContainers?: readonly object[];
}

/** The workspace's template of `onFileBackend`, with more in its pod. */
export function podWith({ container = {}, sidecars = [], mounts = [], volumes = [], initContainers }: PodChange) {
  const { spec } = onFileBackend.workspaceTemplate.spec.podTemplate;
  const [pulumi] = spec.containers;
  const pod = {
    ...spec,
    containers: [...sidecars, { ...pulumi, volumeMounts: [...pulumi.volumeMounts, ...mounts], ...container }],
    volumes: [...spec.volumes, ...volumes],
    ...(initContainers && { initContainers }),
  };
  return { spec: { podTemplate: { spec: pod } } };
}
