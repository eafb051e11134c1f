/**
 * The chart's values: what each is called, what it means and what it is unless told. `values.yaml`, `values.schema.json` and
 * the chart's README are made from this. Names are those of the Go operator's chart where it has the value, too.
 */
import { durationPattern, imageRegistry, imageRepository } from "@pko/api";
import { Type, type TProperties, type TSchema, type TSchemaOptions } from "typebox";

const closed = { additionalProperties: false };

const group = <Fields extends TProperties>(description: string, fields: Fields) =>
  Type.Object(fields, { description, ...closed });
const text = (value: string, description: string, options: TSchemaOptions = {}) =>
  Type.String({ description, default: value, ...options });
const flag = (value: boolean, description: string) => Type.Boolean({ description, default: value });
const count = (value: number, description: string) => Type.Integer({ description, default: value, minimum: 0 });
const duration = (value: string, description: string) => text(value, description, { pattern: durationPattern });
const oneOf = (values: [string, ...string[]], description: string) =>
  Type.String({ description, default: values[0], enum: values });
/** Whatever Kubernetes takes there. */
const object = (description: string, value: object = {}) => Type.Object({}, { description, default: value });
/** A list of objects; nothing at all means none, as in the Go operator's values. */
const list = (description: string, items: TSchema = Type.Object({})) =>
  Type.Unsafe({ type: ["array", "null"], items, description, default: [] });
const texts = (description: string) => list(description, Type.String({ minLength: 1 }));
const textMap = (description: string) => Type.Record(Type.String(), Type.String(), { description, default: {} });
const numberOrText = (value: string | number, description: string) =>
  Type.Unsafe<string | number>({ type: ["string", "integer"], description, default: value });

const images = {
  image: group("The image of the operator, which holds the agent as well.", {
    registry: text(imageRegistry, "The registry to pull from."),
    repository: text(imageRepository, "The repository to pull from."),
    pullPolicy: oneOf(["IfNotPresent", "Always", "Never"], "When the nodes pull, for the operator and for the agent."),
    tag: text("", "The tag; the chart's appVersion when empty."),
    digest: text("", "The digest, as sha256:…; it goes before the tag.", { pattern: "^(sha256:[0-9a-f]{64})?$" }),
  }),
  imagePullSecrets: Type.Unsafe({
    type: ["array", "string", "null"],
    items: Type.Object({}),
    description: "Secrets with credentials for the registry, as name: NAME.",
    default: [],
  }),
};

const running = {
  replicaCount: count(1, "How many operators run. One leads; another takes over within seconds when it ends."),
  deploymentStrategy: text("", "How old pods are replaced: RollingUpdate (when empty) or Recreate."),
  terminationGracePeriodSeconds: count(60, "How long a pod may take to end. Runs go on in their workspaces meanwhile."),
  watchNamespaces: texts(
    "The namespaces to serve; all of them when empty. With names, roles are granted in these namespaces alone.",
  ),
};

const controller = {
  controller: group("The operator's own settings.", {
    logLevel: numberOrText("info", "debug, info, warn, error, or zap's numbers."),
    logFormat: oneOf(["console", "json"], "For people or for machines."),
    metricsSecure: flag(true, "Metrics by HTTPS, for callers whose token may get the path /metrics; else plain HTTP."),
    referenceCheckInterval: duration(
      "1m",
      "How often Secrets and ConfigMaps in use are asked whether they have changed.",
    ),
    advertisedAddress: text("", "Without effect: programs travel to workspaces by the agent's own connection."),
  }),
  leaderElection: group("How replicas agree on who leads.", {
    leaseDuration: duration("15s", "How long others wait before they take over from a leader that fell silent."),
    renewDeadline: duration("10s", "How long a leader tries to renew before it gives up; shorter than leaseDuration."),
    retryPeriod: duration("2s", "The time between two tries."),
  }),
  kubeAPI: group("The connection to the API server.", {
    timeout: duration("30s", "How long a question may take, with all its attempts."),
  }),
  git: group("Git repositories.", {
    allowHttp: flag(
      false,
      "Whether repositories may be read over plain http://, for the operator and for workspaces. Nothing protects what it carries: the program, and the credentials.",
    ),
  }),
  flux: group("Flux sources.", {
    maxUntarSizeBytes: numberOrText(
      "",
      "The most bytes that an artifact unpacks to; 100 MiB when empty, -1 for no limit.",
    ),
  }),
  workspace: group("Workspaces.", {
    idleTimeoutSeconds: count(600, "How long a workspace keeps its pod after its last work; 0 keeps it for ever."),
    lostNodeAfter: duration(
      "5m",
      "How long a workspace's pod may not respond before its node counts as lost and its Stack is stalled.",
    ),
    enforceSecurityProfile: flag(
      true,
      "Whether a pod template that breaks its Workspace's securityProfile is refused; else the template wins.",
    ),
  }),
  oidc: group("How workspaces log in to Pulumi Cloud by OpenID Connect, unless their Stack says otherwise.", {
    enabled: flag(true, "Whether a Stack without an access token logs in with its service account."),
    organization: text("", "The organization whose token is asked for; the stack's own when empty."),
    team: text("", "The team whose token is asked for."),
    user: text("", "The user whose token is asked for."),
    admin: flag(false, "Whether the organization's token is an administrator's."),
    expirationSeconds: count(7200, "How long a token is good for."),
  }),
  crds: group("The definitions of the kinds. Helm installs them first; it never deletes them.", {
    upgrade: flag(true, "Whether the operator brings them up to date when it starts."),
  }),
  admissionPolicy: group("A policy by which the API server refuses Stacks that can never work.", {
    enabled: flag(true, "Whether it is installed."),
  }),
  extraEnv: list("More environment variables for the operator."),
};

const access = {
  rbac: group("What the operator may do.", {
    create: flag(true, "Whether roles and bindings are created."),
    createClusterRole: flag(
      true,
      "Whether cluster roles and their bindings are; with watchNamespaces only those that must be. Without them tokens cannot be checked: set controller.metricsSecure to false.",
    ),
    createRole: flag(
      false,
      "Whether a role is created in the release's namespace; without a cluster role it alone is served.",
    ),
    createClusterAggregationRoles: flag(true, "Whether the cluster's roles view and edit come to cover the kinds."),
    extraRules: list("More rules for the operator, such as for sources of another kind."),
  }),
  serviceAccount: group("The operator's service account.", {
    create: flag(true, "Whether it is created."),
    annotations: textMap("Its annotations."),
    name: text("", "Its name; the full name when empty."),
  }),
};

const naming = {
  nameOverride: text("", "A name in place of the chart's."),
  fullnameOverride: text("", "A name in place of the release's and the chart's together."),
  podAnnotations: textMap("Annotations of the pods."),
  podLabels: textMap("More labels of the pods."),
  deploymentAnnotations: textMap("Annotations of the Deployment."),
  serviceAnnotations: textMap("Annotations of the Service."),
};

const restrictedPod = {
  runAsNonRoot: true,
  runAsUser: 65_532,
  runAsGroup: 65_532,
  fsGroup: 65_532,
  seccompProfile: { type: "RuntimeDefault" },
};
const restrictedContainer = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
};

const pods = {
  podSecurityContext: object("The pods' security context.", restrictedPod),
  securityContext: object("The container's security context.", restrictedContainer),
  resources: object("What the operator asks for, and its limits.", {
    requests: { cpu: "100m", memory: "128Mi" },
    limits: { memory: "512Mi" },
  }),
  nodeSelector: object("The nodes to run on."),
  tolerations: list("Taints that are tolerated."),
  affinity: object("Rules of affinity."),
  topologySpreadConstraints: list("How replicas are spread; over nodes where that is possible when empty."),
  priorityClassName: text("", "The priority class of the pods."),
  extraVolumes: list("More volumes of the pods."),
  extraVolumeMounts: list("More mounts of the operator's container."),
  extraPorts: list("More ports of the operator's container."),
  initContainers: list("Containers that run first."),
  extraSidecars: list("Containers that run beside."),
};

const surroundings = {
  podDisruptionBudget: group("With two replicas or more, a drain takes one at a time.", {
    enabled: flag(true, "Whether there is one."),
  }),
  networkPolicy: group("Who may reach whom, where the cluster's network heeds it.", {
    enabled: flag(false, "Whether policies are installed."),
    metricsFrom: list("Who may scrape metrics, as peers of a NetworkPolicy; anyone in the cluster when empty."),
    workspaceNamespaces: texts("Namespaces whose agents hear the operator alone; those of watchNamespaces when empty."),
  }),
  serviceMonitor: group("For Prometheus Operator: what to scrape.", {
    enabled: flag(false, "Whether there is one, where the cluster serves its kind."),
    namespace: text("", "Its namespace; the release's when empty."),
    labels: textMap("Its labels, by which a Prometheus chooses it."),
    interval: text("", "How often to scrape."),
    timeout: text("", "How long a scrape may take."),
    telemetryPath: text("/metrics", "The path."),
    targetLabels: texts("Labels of the Service to put on what is scraped."),
    metricRelabelings: list("Changes to what is scraped."),
  }),
  prometheusRule: group("For Prometheus Operator: alerts.", {
    enabled: flag(false, "Whether there are any, where the cluster serves their kind."),
    namespace: text("", "Their namespace; the release's when empty."),
    labels: textMap("Their labels, by which a Prometheus chooses them."),
    failingFor: text("15m", "How long a Stack fails before someone is told."),
  }),
  grafanaDashboard: group("A dashboard, in a ConfigMap that Grafana's sidecar finds.", {
    enabled: flag(false, "Whether there is one."),
    namespace: text("", "Its namespace; the release's when empty."),
    labels: Type.Record(Type.String(), Type.String(), {
      description: "Its labels, by which the sidecar finds it.",
      default: { grafana_dashboard: "1" },
    }),
    annotations: textMap("Its annotations."),
  }),
};

export const ChartValues = Type.Object(
  {
    ...running,
    ...images,
    ...controller,
    ...access,
    ...naming,
    ...pods,
    ...surroundings,
    global: Type.Optional(Type.Object({}, { description: "What Helm hands from a chart to those within." })),
  },
  closed,
);
