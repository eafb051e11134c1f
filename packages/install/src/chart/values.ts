/**
 * The chart's values with their descriptions and defaults, from which `values.yaml`, `values.schema.json` and the chart's
 * README are generated. Values that the Go operator's chart also has keep their names.
 */
import { durationPattern, imageRegistry, imageRepository, imageTag } from "@pko/api";
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
/** Any object; Kubernetes validates it. */
const object = (description: string, value: object = {}) => Type.Object({}, { description, default: value });
/** A list of objects. As in the Go operator's chart, null means an empty list. */
const list = (description: string, items: TSchema = Type.Object({})) =>
  Type.Unsafe({ type: ["array", "null"], items, description, default: [] });
const texts = (description: string) => list(description, Type.String({ minLength: 1 }));
const textMap = (description: string) => Type.Record(Type.String(), Type.String(), { description, default: {} });
const numberOrText = (value: string | number, description: string) =>
  Type.Unsafe<string | number>({ type: ["string", "integer"], description, default: value });

const images = {
  image: group("The image of the operator, which also contains the agent.", {
    registry: text(imageRegistry, "The registry of the image."),
    repository: text(imageRepository, "The repository of the image."),
    pullPolicy: oneOf(["IfNotPresent", "Always", "Never"], "The pull policy for the operator and the agent."),
    tag: text("", "The tag of the image. Defaults to the chart's appVersion."),
    digest: text("", "The digest of the image, as sha256:…. It takes precedence over the tag.", {
      pattern: "^(sha256:[0-9a-f]{64})?$",
    }),
  }),
  imagePullSecrets: Type.Unsafe({
    type: ["array", "string", "null"],
    items: Type.Object({}),
    description: "Secrets with credentials for the registry, each as name: NAME.",
    default: [],
  }),
};

const deployment = {
  replicaCount: count(1, "The number of replicas. One is the leader; if it stops, another takes over within seconds."),
  deploymentStrategy: text("", "The update strategy of the Deployment: RollingUpdate (default) or Recreate."),
  terminationGracePeriodSeconds: count(
    60,
    "The time in seconds that a pod has to shut down. Meanwhile, runs continue in their workspaces.",
  ),
  watchNamespaces: texts(
    "The namespaces to watch. Defaults to all namespaces. If set, the operator gets roles only in these namespaces.",
  ),
};

const controller = {
  controller: group("Settings of the operator.", {
    logLevel: numberOrText(
      "info",
      "The log level: debug, info, warn, error, or a number as in zap. The annotation pulumi.com/log-level of the operator's Lease changes it at run time.",
    ),
    logFormat: oneOf(["json", "console"], "The log format: json for machines, console for humans."),
    metricsSecure: flag(
      true,
      "Whether to serve metrics over HTTPS, only to clients whose token is authorized to get /metrics. Otherwise, they are served over plain HTTP to everyone.",
    ),
    referenceCheckInterval: duration(
      "1m",
      "How often the operator checks the Secrets and ConfigMaps in use for changes.",
    ),
    maxConcurrentUpdates: count(
      20,
      "How many updates may run at the same time. Others wait, without a pod, until one ends; namespaces take turns. 0 for any number.",
    ),
    maxConcurrentUpdatesPerNamespace: count(
      10,
      "How many updates of one namespace may run at the same time, so that it leaves slots for others. 0 for any number.",
    ),
    advertisedAddress: text(
      "",
      "Has no effect: the operator sends programs to workspaces over the connection to the agent.",
    ),
  }),
  leaderElection: group("Leader election between replicas.", {
    leaseDuration: duration(
      "15s",
      "How long the other replicas wait before they take over from a leader that does not renew its lease.",
    ),
    renewDeadline: duration(
      "10s",
      "How long the leader tries to renew its lease before it gives up. Must be shorter than leaseDuration.",
    ),
    retryPeriod: duration("2s", "The time between two attempts."),
  }),
  kubeAPI: group("The connection to the API server.", {
    timeout: duration("30s", "The timeout of a request, including all retries."),
  }),
  git: group("Git repositories.", {
    allowHttp: flag(
      false,
      "Whether the operator and workspaces may read repositories over plain http://. Neither the program nor the credentials are protected in transit.",
    ),
  }),
  flux: group("Flux sources.", {
    maxUntarSizeBytes: numberOrText(
      "",
      "The maximum size in bytes of an unpacked artifact; -1 for no limit. Defaults to 100 MiB.",
    ),
  }),
  workspace: group("Workspaces.", {
    idleTimeoutSeconds: count(600, "The time in seconds after which an idle workspace is scaled to zero; 0 for never."),
    lostNodeAfter: duration(
      "5m",
      "How long a workspace pod may be unresponsive before its node is considered lost and its Stack is stalled.",
    ),
    enforceSecurityProfile: flag(
      true,
      "Whether to reject pod templates that violate the securityProfile of their Workspace. Otherwise, the template takes precedence.",
    ),
  }),
  records: group("Records of runs.", {
    maxTotalSize: text(
      "512Mi",
      "The maximum size of all records together, in bytes or with a unit: Ki, Mi or Gi. Beyond it, the oldest are deleted.",
      { pattern: "^[0-9]+(Ki|Mi|Gi)?$" },
    ),
  }),
  oidc: group("How workspaces log in to Pulumi Cloud with OpenID Connect, unless their Stack overrides it.", {
    enabled: flag(true, "Whether a Stack without an access token logs in with the token of its service account."),
    organization: text(
      "",
      "The organization whose token is requested. Defaults to the organization of the Pulumi stack.",
    ),
    team: text("", "The team whose token is requested."),
    user: text("", "The user whose token is requested."),
    admin: flag(false, "Whether the organization's token has administrator permissions."),
    expirationSeconds: count(7200, "The lifetime of a token in seconds."),
  }),
  crds: group("The CRDs. Helm installs them with a new release, but never adds, upgrades or deletes any after that.", {
    upgrade: flag(true, "Whether the operator creates missing CRDs and upgrades the others when it starts."),
  }),
  admissionPolicy: group("ValidatingAdmissionPolicies, which the API server enforces in the whole cluster.", {
    enabled: flag(
      true,
      "Whether to install the policies that reject invalid Stacks, check who approves changes, and protect Stacks from deletion. Without them, Stacks that require approval are stalled.",
    ),
    protectNamespaces: flag(
      false,
      "Whether to install a policy that denies the deletion of namespaces with the label pulumi.com/protect.",
    ),
  }),
  extraEnv: list("Additional environment variables for the operator, such as OTEL_EXPORTER_OTLP_ENDPOINT for traces."),
};

const access = {
  rbac: group("The operator's permissions.", {
    create: flag(true, "Whether to create roles and bindings."),
    createClusterRole: flag(
      true,
      "Whether to create cluster roles and their bindings. With watchNamespaces, only the necessary ones are created. Without cluster roles, the operator cannot check tokens: set controller.metricsSecure to false.",
    ),
    createRole: flag(
      false,
      "Whether to create a role in the release's namespace. Without a cluster role, the operator watches only this namespace.",
    ),
    createClusterAggregationRoles: flag(
      true,
      "Whether to extend the cluster roles admin, edit and view to Stacks, Programs, Workspaces and Updates, and to create a cluster role for users who approve changes.",
    ),
    extraRules: list("Additional rules for the operator, for example for other kinds of sources."),
  }),
  serviceAccount: group("The operator's service account.", {
    create: flag(true, "Whether to create the service account."),
    annotations: textMap("Annotations of the service account."),
    name: text("", "The name of the service account. Defaults to the full name."),
  }),
};

const naming = {
  nameOverride: text("", "Overrides the name of the chart."),
  fullnameOverride: text("", "Overrides the full name, which is derived from the release and the chart."),
  podAnnotations: textMap("Annotations of the pods."),
  podLabels: textMap("Additional labels of the pods."),
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
  podSecurityContext: object("The security context of the pods.", restrictedPod),
  securityContext: object("The security context of the container.", restrictedContainer),
  resources: object("The resource requests and limits of the operator.", {
    requests: { cpu: "100m", memory: "128Mi" },
    limits: { memory: "512Mi" },
  }),
  nodeSelector: object("The node selector of the pods."),
  tolerations: list("Tolerations of the pods."),
  affinity: object("Affinity rules of the pods."),
  topologySpreadConstraints: list(
    "Topology spread constraints of the pods. By default, replicas are spread over nodes if possible.",
  ),
  priorityClassName: text("", "The priority class of the pods."),
  extraVolumes: list("Additional volumes of the pods."),
  extraVolumeMounts: list("Additional volume mounts of the operator's container."),
  extraPorts: list("Additional ports of the operator's container."),
  initContainers: list("Init containers of the pods."),
  extraSidecars: list("Additional containers of the pods."),
};

const integrations = {
  podDisruptionBudget: group(
    "A PodDisruptionBudget, which lets a drain evict only one replica at a time. Used only with two replicas or more.",
    {
      enabled: flag(true, "Whether to create the PodDisruptionBudget."),
    },
  ),
  networkPolicy: group(
    "NetworkPolicies for the operator and workspaces. They have an effect only if the cluster's network plugin enforces them.",
    {
      enabled: flag(false, "Whether to create NetworkPolicies."),
      metricsFrom: list("The NetworkPolicy peers that may scrape metrics. Defaults to all pods in the cluster."),
      consoleFrom: list("The NetworkPolicy peers that may reach the console. Defaults to all pods in the cluster."),
      webhookFrom: list("The NetworkPolicy peers that may send webhooks. Defaults to everyone."),
      workspaceNamespaces: texts(
        "The namespaces in which agents accept connections only from the operator. Defaults to watchNamespaces.",
      ),
    },
  ),
  serviceMonitor: group("A ServiceMonitor for Prometheus Operator.", {
    enabled: flag(false, "Whether to create the ServiceMonitor, if the cluster has its CRD."),
    namespace: text("", "The namespace of the ServiceMonitor. Defaults to the release's namespace."),
    labels: textMap("Additional labels, by which Prometheus selects the ServiceMonitor."),
    interval: text("", "The scrape interval."),
    timeout: text("", "The scrape timeout."),
    telemetryPath: text("/metrics", "The path of the metrics."),
    targetLabels: texts("Labels of the Service to copy to the metrics."),
    metricRelabelings: list("Relabeling rules for the metrics."),
  }),
  prometheusRule: group("A PrometheusRule with alerts for Prometheus Operator.", {
    enabled: flag(false, "Whether to create the PrometheusRule, if the cluster has its CRD."),
    namespace: text("", "The namespace of the PrometheusRule. Defaults to the release's namespace."),
    labels: textMap("Additional labels, by which Prometheus selects the PrometheusRule."),
    failingFor: text("15m", "How long a Stack must fail or be stalled before an alert fires."),
    awaitingApprovalFor: text("1d", "How long changes must wait for an approval before an alert fires."),
    driftedFor: text("1h", "How long resources must differ from the state before an alert fires."),
    suspendedFor: text("1w", "How long a Stack must be suspended before an alert fires."),
    stuckAfterSeconds: count(
      7200,
      "How long a Stack must wait for the same thing, such as its update, before an alert fires.",
    ),
    podPendingFor: text("15m", "How long the pod of a workspace must be pending before an alert fires."),
    maxUpdates: count(20_000, "How many Updates must exist before an alert fires."),
    runbookURL: text(
      `https://github.com/pulumi/pulumi-kubernetes-operator/blob/${imageTag}/docs/runbooks`,
      "The folder with the runbooks, to which each alert links.",
    ),
  }),
  grafanaDashboard: group("A Grafana dashboard in a ConfigMap, which Grafana's sidecar loads.", {
    enabled: flag(false, "Whether to create the dashboard."),
    namespace: text("", "The namespace of the ConfigMap. Defaults to the release's namespace."),
    labels: Type.Record(Type.String(), Type.String(), {
      description: "Labels of the ConfigMap, by which the sidecar finds it.",
      default: { grafana_dashboard: "1" },
    }),
    annotations: textMap("Annotations of the ConfigMap."),
  }),
};

const webConsole = {
  console: group("The web console. It has no permissions of its own: each request uses the token of its user.", {
    enabled: flag(false, "Whether to run the console."),
    replicaCount: count(
      1,
      "The number of replicas. With more than one, a proxy in front of the console must send the users' tokens: tokens that users enter are kept in the memory of one replica.",
    ),
    hosts: texts(
      "The names by which browsers reach the console, with the port if it is not the default one. Requests for other names, except localhost, are refused. Defaults to the hosts of the Ingress and the HTTPRoute; without them, every name is accepted.",
    ),
    podAnnotations: textMap("Annotations of the pods."),
    podLabels: textMap("Additional labels of the pods."),
    resources: object("The resource requests and limits of the console.", {
      requests: { cpu: "10m", memory: "96Mi" },
      limits: { memory: "512Mi" },
    }),
    service: group("The Service of the console.", {
      port: count(80, "The port of the Service."),
      annotations: textMap("Annotations of the Service."),
    }),
    ingress: group("An Ingress for the console.", {
      enabled: flag(false, "Whether to create the Ingress."),
      className: text("", "The class of the Ingress."),
      annotations: textMap("Annotations of the Ingress, for example of a proxy that authenticates users."),
      host: text("", "The host of the Ingress. Required."),
      tlsSecretName: text("", "The Secret with the certificate of the host. Without HTTPS, users cannot enter tokens."),
    }),
    httpRoute: group("An HTTPRoute of the Gateway API for the console.", {
      enabled: flag(false, "Whether to create the HTTPRoute."),
      annotations: textMap("Annotations of the HTTPRoute."),
      parentRefs: list("The Gateways of the route. Required."),
      hostnames: texts("The hosts of the route."),
    }),
  }),
};

const webhooks = {
  webhook: group("The endpoint for webhooks of Git servers, which Receivers accept. It only serves HTTPS.", {
    enabled: flag(false, "Whether to receive webhooks. Without them, commits are found by polling."),
    tlsSecretName: text(
      "",
      "A Secret of type kubernetes.io/tls with the certificate of the endpoint. Without it, the endpoint uses a certificate that only encrypts: senders, or an ingress controller in front of it, must not verify it.",
    ),
    service: group("The Service of the endpoint.", {
      type: oneOf(["ClusterIP", "LoadBalancer", "NodePort"], "The type of the Service."),
      port: count(443, "The port of the Service."),
      annotations: textMap("Annotations of the Service."),
    }),
    ingress: group("An Ingress for the endpoint.", {
      enabled: flag(false, "Whether to create the Ingress."),
      className: text("", "The class of the Ingress."),
      annotations: textMap(
        "Annotations of the Ingress. Most controllers need one to use HTTPS to the Service, such as nginx.ingress.kubernetes.io/backend-protocol: HTTPS.",
      ),
      host: text("", "The host of the Ingress. Required."),
      tlsSecretName: text("", "The Secret with the certificate of the host."),
    }),
    httpRoute: group(
      "An HTTPRoute of the Gateway API for the endpoint. The Gateway needs a BackendTLSPolicy for the Service.",
      {
        enabled: flag(false, "Whether to create the HTTPRoute."),
        annotations: textMap("Annotations of the HTTPRoute."),
        parentRefs: list("The Gateways of the route. Required."),
        hostnames: texts("The hosts of the route."),
      },
    ),
  }),
};

export const ChartValues = Type.Object(
  {
    ...deployment,
    ...images,
    ...controller,
    ...access,
    ...naming,
    ...pods,
    ...integrations,
    ...webConsole,
    ...webhooks,
    global: Type.Optional(Type.Object({}, { description: "Values that Helm shares with subcharts." })),
  },
  closed,
);
