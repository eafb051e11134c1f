/**
 * The operator's objects in the quickstart manifest, built from the chart's default values. A test compares them with the
 * output of the chart's templates.
 * Names and selectors are those of the Go operator's quickstart, so that this operator replaces it.
 */
import { agentPort, imageTag, labelsOfWorkspace, operatorImage } from "@pko/api";

import { chartDefaults } from "./chart/defaults.ts";
import {
  approverRules,
  classRules,
  crdRules,
  editRules,
  metricsAuthRules,
  metricsReaderRules,
  ownRules,
  servedRules,
  viewRules,
  type PathRule,
  type Rule,
} from "./rbac.ts";

export const operatorNamespace = "pulumi-kubernetes-operator";
export const metricsPort = 8383;
export const probesPort = 8081;
export const consolePort = 8080;
export const webhookPort = 9443;

const name = "controller-manager";
const selector = { "control-plane": name };
const labels = { "app.kubernetes.io/name": operatorNamespace, "app.kubernetes.io/version": imageTag };
/** Network policies select the operator's pods by these labels. */
const podLabels = { "app.kubernetes.io/name": operatorNamespace, ...selector };
const rbac = "rbac.authorization.k8s.io";
const subjects = [{ kind: "ServiceAccount", name, namespace: operatorNamespace }];

const inNamespace = (name: string) => ({ name, namespace: operatorNamespace, labels });

const namespace = {
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: operatorNamespace, labels: { ...labels, "pod-security.kubernetes.io/enforce": "restricted" } },
};

const serviceAccount = { apiVersion: "v1", kind: "ServiceAccount", metadata: inNamespace(name) };

const clusterRole = (
  role: string,
  rules: readonly (Rule | PathRule)[],
  more: Readonly<Record<string, string>> = {},
) => ({
  apiVersion: `${rbac}/v1`,
  kind: "ClusterRole",
  metadata: { name: `${operatorNamespace}-${role}`, labels: { ...labels, ...more } },
  rules,
});

const aggregatedTo = (...roles: readonly string[]) =>
  Object.fromEntries(roles.map((role) => [`${rbac}/aggregate-to-${role}`, "true"]));

const clusterRoleBinding = (name: string, role: string) => ({
  apiVersion: `${rbac}/v1`,
  kind: "ClusterRoleBinding",
  metadata: { name, labels },
  roleRef: { apiGroup: rbac, kind: "ClusterRole", name: `${operatorNamespace}-${role}` },
  subjects,
});

const ownRole = {
  apiVersion: `${rbac}/v1`,
  kind: "Role",
  metadata: inNamespace("leader-election-role"),
  rules: ownRules,
};

const ownRoleBinding = {
  apiVersion: `${rbac}/v1`,
  kind: "RoleBinding",
  metadata: inNamespace("leader-election-rolebinding"),
  roleRef: { apiGroup: rbac, kind: "Role", name: "leader-election-role" },
  subjects,
};

const service = {
  apiVersion: "v1",
  kind: "Service",
  metadata: inNamespace(operatorNamespace),
  spec: {
    type: "ClusterIP",
    ports: [{ name: "http-metrics", port: metricsPort, targetPort: "http-metrics", protocol: "TCP" }],
    selector,
  },
};

const fromField = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });

const { controller, crds, image, kubeAPI, leaderElection, oidc, records, workspace } = chartDefaults;

const container = {
  name: "manager",
  image: operatorImage,
  imagePullPolicy: image.pullPolicy,
  args: [
    "--leader-elect",
    ...(crds.upgrade ? ["--upgrade-crds"] : []),
    ...(controller.metricsSecure ? ["--metrics-secure"] : []),
  ],
  env: [
    fromField("OPERATOR_NAMESPACE", "metadata.namespace"),
    fromField("OPERATOR_POD_NAME", "metadata.name"),
    { name: "OPERATOR_AGENT_IMAGE", value: operatorImage },
    { name: "OPERATOR_AGENT_IMAGE_PULL_POLICY", value: image.pullPolicy },
    { name: "OPERATOR_LOG_LEVEL", value: String(controller.logLevel) },
    { name: "OPERATOR_LOG_FORMAT", value: controller.logFormat },
    { name: "OPERATOR_LEASE_DURATION", value: leaderElection.leaseDuration },
    { name: "OPERATOR_RENEW_DEADLINE", value: leaderElection.renewDeadline },
    { name: "OPERATOR_RETRY_PERIOD", value: leaderElection.retryPeriod },
    { name: "OPERATOR_KUBE_API_TIMEOUT", value: kubeAPI.timeout },
    { name: "OPERATOR_REFERENCE_CHECK_INTERVAL", value: controller.referenceCheckInterval },
    { name: "OPERATOR_MAX_CONCURRENT_UPDATES", value: String(controller.maxConcurrentUpdates) },
    {
      name: "OPERATOR_MAX_CONCURRENT_UPDATES_PER_NAMESPACE",
      value: String(controller.maxConcurrentUpdatesPerNamespace),
    },
    { name: "OPERATOR_IDLE_TIMEOUT_SECONDS", value: String(workspace.idleTimeoutSeconds) },
    { name: "OPERATOR_LOST_NODE_AFTER", value: workspace.lostNodeAfter },
    { name: "OPERATOR_RECORDS_MAX_TOTAL_SIZE", value: records.maxTotalSize },
    { name: "OPERATOR_ENFORCE_SECURITY_PROFILE", value: String(workspace.enforceSecurityProfile) },
    { name: "OPERATOR_OIDC_EXPIRATION_SECONDS", value: String(oidc.expirationSeconds) },
  ],
  ports: [
    { name: "http-metrics", containerPort: metricsPort, protocol: "TCP" },
    { name: "http-probes", containerPort: probesPort, protocol: "TCP" },
  ],
  livenessProbe: { httpGet: { path: "/healthz", port: probesPort }, initialDelaySeconds: 15, periodSeconds: 20 },
  readinessProbe: { httpGet: { path: "/readyz", port: probesPort }, initialDelaySeconds: 1, periodSeconds: 5 },
  resources: chartDefaults.resources,
  securityContext: chartDefaults.securityContext,
  // Git credentials are stored here for the duration of a request.
  volumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
};

const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: inNamespace(name),
  spec: {
    replicas: chartDefaults.replicaCount,
    selector: { matchLabels: selector },
    template: {
      metadata: { labels: podLabels, annotations: { "kubectl.kubernetes.io/default-container": container.name } },
      spec: {
        serviceAccountName: name,
        terminationGracePeriodSeconds: chartDefaults.terminationGracePeriodSeconds,
        securityContext: chartDefaults.podSecurityContext,
        containers: [container],
        volumes: [{ name: "tmp", emptyDir: { medium: "Memory", sizeLimit: "64Mi" } }],
      },
    },
  },
};

/** In the namespace that the documentation uses, agents accept connections only from the operator. */
const agentsNetworkPolicy = {
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name: "allow-workspace-rpc", namespace: "default", labels },
  spec: {
    podSelector: { matchLabels: { "auto.pulumi.com/component": labelsOfWorkspace("")["auto.pulumi.com/component"] } },
    policyTypes: ["Ingress"],
    ingress: [
      {
        from: [
          {
            namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": operatorNamespace } },
            podSelector: { matchLabels: { "app.kubernetes.io/name": operatorNamespace } },
          },
        ],
        ports: [{ protocol: "TCP", port: agentPort }],
      },
    ],
  },
};

export const operatorNamespaceObject = namespace;

export const operatorObjects: readonly object[] = [
  serviceAccount,
  clusterRole("controller-manager", servedRules),
  clusterRole("crds", crdRules),
  clusterRole("classes", classRules),
  clusterRole("metrics-auth", metricsAuthRules),
  clusterRole("metrics-reader", metricsReaderRules),
  clusterRole("view", viewRules, aggregatedTo("admin", "edit", "view")),
  clusterRole("edit", editRules, aggregatedTo("admin", "edit")),
  clusterRole("approver", approverRules),
  clusterRoleBinding(operatorNamespace, "controller-manager"),
  clusterRoleBinding(`${operatorNamespace}-crds`, "crds"),
  clusterRoleBinding(`${operatorNamespace}-classes`, "classes"),
  clusterRoleBinding(`${operatorNamespace}-metrics-auth`, "metrics-auth"),
  ownRole,
  ownRoleBinding,
  service,
  agentsNetworkPolicy,
  deployment,
];
