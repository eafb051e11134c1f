/** The manifests that the chart renders, compared with files and with the quickstart manifest. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { quickstartObjects, type Rule } from "@pko/install";
import { optionVariables } from "@pko/operator";
import { parse } from "yaml";

import { chart, helm, manifestsIn, type Manifest } from "../../e2e/install/helm.ts";

const name = "pulumi-kubernetes-operator";
const folder = mkdtempSync(join(tmpdir(), "pko-values-"));

interface PodTemplate {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly automountServiceAccountToken?: boolean;
    readonly containers: readonly { readonly args: readonly string[]; readonly securityContext?: object }[];
  };
}

async function render(values: object): Promise<string> {
  const file = join(folder, `${crypto.randomUUID()}.yaml`);
  await Bun.write(file, JSON.stringify(values));
  const capabilities = ["--kube-version=1.34.0", "--api-versions=monitoring.coreos.com/v1"];
  return await helm("template", name, chart, `--namespace=${name}`, ...capabilities, `--values=${file}`);
}

describe("the chart renders", () => {
  const cases: Readonly<Record<string, object>> = {
    defaults: {},
    namespaced: {
      watchNamespaces: ["team-a", "team-b"],
      crds: { upgrade: false },
      admissionPolicy: { enabled: false },
      networkPolicy: { enabled: true },
      controller: { metricsSecure: false },
      workspace: { enforceSecurityProfile: false },
    },
    "own-namespace": { rbac: { createClusterRole: false, createRole: true, createClusterAggregationRoles: false } },
    observed: {
      replicaCount: 2,
      image: { digest: `sha256:${"0123456789abcdef".repeat(4)}`, pullPolicy: "Always" },
      priorityClassName: "system-cluster-critical",
      networkPolicy: {
        enabled: true,
        metricsFrom: [{ namespaceSelector: { matchLabels: { name: "monitoring" } } }],
        workspaceNamespaces: ["default"],
      },
      serviceMonitor: { enabled: true, interval: "30s", labels: { release: "prometheus" } },
      prometheusRule: { enabled: true, labels: { release: "prometheus" } },
      oidc: { organization: "acme", team: "platform" },
    },
    console: {
      networkPolicy: { enabled: true },
      console: {
        enabled: true,
        ingress: { enabled: true, className: "nginx", host: "pulumi.example.com", tlsSecretName: "pulumi-tls" },
        httpRoute: { enabled: true, parentRefs: [{ name: "gateway" }], hostnames: ["console.example.com"] },
      },
    },
    webhook: {
      replicaCount: 2,
      networkPolicy: { enabled: true, webhookFrom: [{ namespaceSelector: { matchLabels: { name: "ingress" } } }] },
      webhook: {
        enabled: true,
        tlsSecretName: "webhook-tls",
        service: { type: "LoadBalancer" },
        ingress: { enabled: true, className: "nginx", host: "hooks.example.com", tlsSecretName: "hooks-tls" },
        httpRoute: { enabled: true, parentRefs: [{ name: "gateway" }], hostnames: ["hooks.example.com"] },
      },
    },
  };
  for (const [name, values] of Object.entries(cases)) {
    test(`the values ${name}`, async () => {
      const text = await render(values);
      const file = Bun.file(join(import.meta.dir, "testdata", `${name}.yaml`));
      if (process.env["UPDATE_GOLDEN"]) await Bun.write(file, text);
      expect(text).toBe(await file.text());
    });
  }

  test("every value of the Go operator's chart", async () => {
    const values = parse(await Bun.file(join(import.meta.dir, "testdata/reference-values.yaml")).text()) as object;
    const deployment = find(manifestsIn(await render(values)), "Deployment");
    expect(deployment.metadata.name).toBe("ours-controller-manager");
    const text = JSON.stringify(deployment);
    for (const trace of Object.values(traces)) expect(text).toContain(trace);
  });

  test("a console without permissions, a token or the operator's labels, only if it is enabled", async () => {
    const objects = manifestsIn(await render({ console: { enabled: true } }));
    const ofConsole = objects.filter(({ metadata }) => metadata.name === `${name}-console`);
    expect(ofConsole.map(({ kind }) => kind).toSorted()).toEqual(["Deployment", "Service", "ServiceAccount"]);
    const bindings = objects.filter(({ kind }) => kind.endsWith("RoleBinding"));
    expect(JSON.stringify(bindings)).not.toContain("console");
    const { template } = (find(ofConsole, "Deployment") as unknown as { spec: { template: PodTemplate } }).spec;
    expect(template.spec.automountServiceAccountToken).toBe(false);
    expect(template.metadata.labels["app.kubernetes.io/name"]).toBe(`${name}-console`);
    const [container] = template.spec.containers;
    expect(container?.args).toContain("--hosts=");
    expect(container?.securityContext).toEqual(
      expect.objectContaining({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true }) as object,
    );
    expect(await render({})).not.toContain("-console");
  });

  test("the hosts of the console, by default those of its Ingress and HTTPRoute", async () => {
    const ingress = { enabled: true, host: "a.example.com" };
    const httpRoute = { enabled: true, parentRefs: [{ name: "gateway" }], hostnames: ["b.example.com"] };
    const hosts = async (values: object): Promise<string | undefined> =>
      /--hosts=(\S*)/.exec(await render({ console: { enabled: true, ...values } }))?.[1];
    expect(await hosts({ ingress, httpRoute })).toBe("a.example.com,b.example.com");
    expect(await hosts({ ingress, hosts: ["c.example.com:8443"] })).toBe("c.example.com:8443");
    const withoutHost = render({ console: { enabled: true, ingress: { enabled: true } } });
    expect(await withoutHost.catch(String)).toContain("console.ingress.host is required");
  });

  test("one network policy for the workspaces of each served namespace", async () => {
    const served = async (values: object): Promise<string[]> => {
      const objects = manifestsIn(await render({ networkPolicy: { enabled: true }, ...values }));
      return objects
        .filter(({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === "allow-workspace-rpc")
        .map(({ metadata }) => metadata.namespace ?? "");
    };
    expect(await served({ watchNamespaces: ["a", "b", "a"] })).toEqual(["a", "b"]);
    expect(await served({ rbac: { createClusterRole: false, createRole: true } })).toEqual([name]);
  });

  test("a custom image with any tag, and later versions", async () => {
    const renderImage = async (image: object): Promise<string> =>
      JSON.stringify(find(manifestsIn(await render({ image })), "Deployment"));
    expect(await renderImage({ repository: "team/operator", tag: "v2.0.0" })).toContain(
      "docker.io/team/operator:v2.0.0",
    );
    expect(await renderImage({ tag: "v3.1.0" })).toContain(`${name}:v3.1.0`);
    expect(await renderImage({ tag: "" })).toContain(`${name}:v`);
  });

  test("plain HTTP for repositories only if the value allows it", async () => {
    const variable = '{"name":"OPERATOR_ALLOW_HTTP","value":"true"}';
    const deployed = async (values: object): Promise<string> =>
      JSON.stringify(find(manifestsIn(await render(values)), "Deployment"));
    expect(await deployed({})).not.toContain("OPERATOR_ALLOW_HTTP");
    expect(await deployed({ git: { allowHttp: true } })).toContain(variable);
  });

  test("a policy for namespaces, only if the value requests it, whose binding has the same name", async () => {
    const objects = manifestsIn(await render({ admissionPolicy: { enabled: false, protectNamespaces: true } }));
    const policies = objects.filter(({ kind }) => kind.startsWith("ValidatingAdmissionPolicy"));
    expect(policies.map(({ kind, metadata }) => [kind, metadata.name])).toEqual([
      ["ValidatingAdmissionPolicy", `${name}-namespace-protection`],
      ["ValidatingAdmissionPolicyBinding", `${name}-namespace-protection`],
    ]);
    expect(policies[1]?.spec).toMatchObject({
      policyName: `${name}-namespace-protection`,
      validationActions: ["Deny"],
    });
    expect(await render({})).not.toContain("-namespace-protection");
  });

  test("no role that is aggregated and grants the right to approve", async () => {
    const granting = manifestsIn(await render({})).filter(
      ({ kind, rules = [] }) => kind === "ClusterRole" && rules.some(grantsApproval),
    );
    expect(granting.map(({ metadata }) => metadata.name)).toEqual([`${name}-controller-manager`, `${name}-approver`]);
    for (const { metadata } of granting) expect(JSON.stringify(metadata)).not.toContain("aggregate-to");
  });

  test("a dashboard in valid JSON", async () => {
    const objects = manifestsIn(await render({ grafanaDashboard: { enabled: true } }));
    const { data } = find(objects, "ConfigMap") as unknown as { data: Record<string, string> };
    expect(JSON.parse(data[`${name}.json`] ?? "")).toMatchObject({ uid: name });
  });
});

/** The part of the Deployment that results from each value of testdata/reference-values.yaml. */
const traces = {
  deploymentStrategy: '"type":"Recreate"',
  replicaCount: '"replicas":3',
  terminationGracePeriodSeconds: '"terminationGracePeriodSeconds":300',
  image: '"image":"registry.example.com/team/operator:v9"',
  pullPolicy: '"imagePullPolicy":"Always"',
  imagePullSecrets: '"imagePullSecrets":[{"name":"registry"}]',
  logLevel: '{"name":"OPERATOR_LOG_LEVEL","value":"3"}',
  logFormat: '{"name":"OPERATOR_LOG_FORMAT","value":"console"}',
  metricsSecure: '"args":["--leader-elect","--upgrade-crds"]',
  leaseDuration: '{"name":"OPERATOR_LEASE_DURATION","value":"60s"}',
  renewDeadline: '{"name":"OPERATOR_RENEW_DEADLINE","value":"45s"}',
  retryPeriod: '{"name":"OPERATOR_RETRY_PERIOD","value":"10s"}',
  kubeAPI: '{"name":"OPERATOR_KUBE_API_TIMEOUT","value":"20s"}',
  flux: '{"name":"OPERATOR_FLUX_MAX_UNPACKED_BYTES","value":"-1"}',
  extraEnv: '{"name":"HTTPS_PROXY","value":"http://proxy"}',
  serviceAccount: '"serviceAccountName":"given"',
  podAnnotations: '"pod-annotation":"yes"',
  deploymentAnnotations: '"deployment-annotation":"yes"',
  podSecurityContext: '"runAsUser":1234',
  securityContext: '"privileged":false',
  resources: '"cpu":"3"',
  nodeSelector: '"nodeSelector":{"disk":"ssd"}',
  tolerations: '"tolerations":[{"key":"dedicated","operator":"Exists"}]',
  affinity: '"affinity":{"podAntiAffinity":{}}',
  extraVolumes: '{"emptyDir":{},"name":"more"}',
  extraVolumeMounts: '{"mountPath":"/more","name":"more"}',
  extraPorts: '{"containerPort":9091,"name":"http-extra","protocol":"TCP"}',
  podLabels: '"pod-label":"yes"',
  initContainers: '"name":"first"',
  extraSidecars: '"name":"beside"',
};

describe("the chart rejects values that", () => {
  const cases: readonly (readonly [what: string, values: object, message: string])[] = [
    ["it does not know", { replicas: 2 }, "replicas"],
    ["have the wrong type", { replicaCount: "two" }, "replicaCount"],
    ["are not durations", { leaderElection: { leaseDuration: "soon" } }, "leaseDuration"],
    ["are not digests", { image: { digest: "latest" } }, "digest"],
    ["pin an image of the Go operator", { image: { tag: "v2.9.0" } }, "pass --set image.tag= to run v"],
    [
      "pin an image of the Go operator without the v",
      { image: { tag: "2.4.1" } },
      "image.tag 2.4.1 is an image of the Go operator",
    ],
    [
      "pin a mirror of an image of the Go operator",
      { image: { registry: "mirror.example.com", repository: "infra/pulumi-kubernetes-operator", tag: "v2.0.0-rc.1" } },
      "image.tag v2.0.0-rc.1",
    ],
  ];
  for (const [what, values, message] of cases) {
    test(what, async () => {
      const error: unknown = await render(values).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Error);
      expect(String(error)).toContain(message);
    });
  }
});

test("the quickstart installs the same operator as the chart with default values", async () => {
  const chartObjects = manifestsIn(await render({}));
  const quickstart = quickstartObjects() as Manifest[];
  for (const kind of ["Deployment", "Service"]) {
    expect([kind, comparable(find(quickstart, kind))]).toEqual([kind, comparable(find(chartObjects, kind))]);
  }
  const policies = (objects: readonly Manifest[]) =>
    objects.filter(({ kind }) => kind === "ValidatingAdmissionPolicy").map(comparable);
  expect(policies(quickstart).length).toBeGreaterThan(3);
  expect(new Set(policies(quickstart))).toEqual(new Set(policies(chartObjects)));
  const sortedRules = (objects: readonly Manifest[]) =>
    objects
      .flatMap(({ rules = [] }) =>
        rules.map((rule) =>
          JSON.stringify(rule, ["apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs"]),
        ),
      )
      .toSorted();
  expect(sortedRules(quickstart)).toEqual(sortedRules(chartObjects));
});

test("the operator reads every environment variable that the chart and the quickstart set", async () => {
  const everything = {
    watchNamespaces: ["a"],
    git: { allowHttp: true },
    flux: { maxUntarSizeBytes: 1 },
    oidc: { enabled: false, admin: true },
  };
  const text = (await render(everything)) + (await render({ oidc: { organization: "a", team: "b", user: "c" } }));
  const set = new Set(`${text}${JSON.stringify(quickstartObjects())}`.match(/OPERATOR_[A-Z_]+/g));
  expect([...set].filter((name) => !optionVariables.includes(name))).toEqual([]);
});

const grantsApproval = ({ resources = [], verbs = [] }: Partial<Rule>): boolean =>
  resources.some((name) => name.startsWith("approvals") || name === "*") &&
  verbs.some((verb) => !["get", "list", "watch"].includes(verb));

function find(objects: readonly Manifest[], kind: string): Manifest {
  const found = objects.find((object) => object.kind === kind);
  if (!found) throw new Error(`there is no ${kind}`);
  return found;
}

/** Drops names and labels, which follow the Go operator's quickstart and chart, and fields with Kubernetes defaults. */
function comparable({ spec }: Manifest): unknown {
  const dropped = new Set(["labels", "matchLabels", "selector", "serviceAccountName", "strategy"]);
  return JSON.parse(JSON.stringify(spec, (key, value: unknown) => (dropped.has(key) ? undefined : value))) as unknown;
}
