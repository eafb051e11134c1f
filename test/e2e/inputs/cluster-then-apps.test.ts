/**
 * Seed 004, "Creating clusters and applications together": one Stack makes a cluster, another deploys applications to it,
 * with the kubeconfig that the first one has as its output. The cluster is this one; `kubectl` is the real one.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createRepository, serveGit, type GitServer } from "@pko/agent/testing";
import { network } from "@pko/cluster";
import { waitFor } from "@pko/testkit";

import {
  apply,
  clearNamespace,
  isReady,
  kubectl,
  newNamespace,
  onFileBackend,
  reconcile,
  stackUntil,
  startOperator,
  updatesOf,
  type Operator,
  type Place,
} from "../harness.ts";
import { javascriptProject } from "./javascript.ts";
import { publishKubectl } from "./kubectl-image.ts";
import { messageOf } from "./messages.ts";

const slow = 420_000;
const folder = mkdtempSync(join(tmpdir(), "pko-clusters-"));

let operator: Operator;
let place: Place;
let git: GitServer;
let tools: string;

beforeAll(async () => {
  const namespace = await newNamespace("clusters");
  tools = await publishKubectl();
  operator = await startOperator([namespace]);
  place = { client: operator.client, namespace };
  git = serveGit(folder, { hostname: network.machine });
  await apply(
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "pulumi-stack-sa", namespace } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "deployer", namespace } },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: "deployer", namespace },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "edit" },
      subjects: [{ kind: "ServiceAccount", name: "deployer", namespace }],
    },
  );
}, slow);

afterAll(async () => {
  await clearNamespace(place.namespace);
  await git.stop();
  await operator.stop();
}, slow);

/** What a program that makes a cluster would have as its output: an object, with a token of its own. */
async function clusterProject(): Promise<Record<string, string>> {
  const token = await kubectl(["create", "token", "deployer", "-n", place.namespace, "--duration=1h"]);
  // Flattened: a kubeconfig may hold the authority, or name its file.
  const path = "--output=jsonpath={.clusters[0].cluster.certificate-authority-data}";
  const authority = await kubectl(["config", "view", "--raw", "--flatten", path]);
  const named = { cluster: "dev", user: "deployer", namespace: place.namespace };
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: "dev",
        cluster: { server: network.apiServerUrl, "certificate-authority-data": authority },
      },
    ],
    users: [{ name: "deployer", user: { token: token.trim() } }],
    contexts: [{ name: "dev", context: named }],
    "current-context": "dev",
  };
  const project = {
    name: "eks-cluster",
    runtime: "yaml",
    configuration: { "cluster:nodeCount": { type: "integer" } },
    outputs: { kubeconfig: { "fn::secret": kubeconfig } },
  };
  return { "Pulumi.yaml": JSON.stringify(project) };
}

/** Its resource is a ConfigMap, made by `kubectl` with whatever KUBECONFIG there is. */
const appsProject = javascriptProject(
  "k8s-apps",
  `
const pulumi = require("@pulumi/pulumi");

const provider = {
  async create({ text }) {
    const { execFileSync } = require("node:child_process");
    execFileSync("/tools/kubectl", ["create", "configmap", "app", "--from-literal=text=" + text]);
    return { id: "app", outs: { text } };
  },
  async delete() {
    require("node:child_process").execFileSync("/tools/kubectl", ["delete", "configmap", "app"]);
  },
};

class App extends pulumi.dynamic.Resource {
  constructor(name, text) {
    super(provider, name, { text });
  }
}

new App("app", "deployed");

exports.kubeconfig = process.env.KUBECONFIG;
exports.whoami = require("node:child_process").execFileSync("/tools/kubectl", ["auth", "whoami", "-o=jsonpath={.status.userInfo.username}"], { encoding: "utf8" });
`,
);

/** As in the document, but for the namespace, the backend, and where the repositories are. */
function documentStack(name: string, repository: string, spec: object): object {
  const { envRefs, workspaceTemplate } = onFileBackend;
  return {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name, namespace: place.namespace, annotations: { "argocd.argoproj.io/sync-wave": "1" } },
    spec: {
      serviceAccountName: "pulumi-stack-sa",
      stack: name,
      projectRepo: `http://${network.machine}:${git.port}/${repository}.git`,
      branch: "main",
      destroyOnFinalize: true,
      envRefs,
      workspaceTemplate,
      ...spec,
    },
  };
}

function appsStack(): object {
  const { podTemplate } = onFileBackend.workspaceTemplate.spec;
  const [pulumi] = podTemplate.spec.containers;
  const mount = { name: "tools", mountPath: "/tools" };
  return documentStack("apps-dev", "pulumi-apps", {
    prerequisites: [{ type: "Stack", requirement: "cluster-dev", succeededWithinDuration: "30m" }],
    envRefs: {
      ...onFileBackend.envRefs,
      KUBECONFIG: { type: "StackOutput", stack: "cluster-dev", output: "kubeconfig" },
    },
    workspaceTemplate: {
      spec: {
        podTemplate: {
          spec: {
            ...podTemplate.spec,
            initContainers: [
              {
                name: "kubectl",
                image: tools,
                command: ["sh", "-c", "cp /tools/* /into/"],
                volumeMounts: [{ ...mount, mountPath: "/into" }],
              },
            ],
            containers: [{ ...pulumi, volumeMounts: [...pulumi.volumeMounts, mount] }],
            volumes: [...podTemplate.spec.volumes, { name: "tools", emptyDir: {} }],
          },
        },
      },
    },
  });
}

test(
  "creating clusters and applications together",
  async () => {
    const { namespace } = place;
    const repository = createRepository(folder, "pulumi-eks");
    repository.commit(await clusterProject());
    createRepository(folder, "pulumi-apps").commit(appsProject);

    // In the wrong order, as two waves that are applied together would be.
    await apply(appsStack());
    const waiting = await stackUntil(place, "apps-dev", ({ status }) =>
      Boolean(status?.conditions?.some(({ reason }) => reason === "PrerequisiteNotSatisfied")),
    );
    expect(messageOf(waiting)).toContain("there is no Stack cluster-dev");

    const config = { "aws:region": "us-west-2", "cluster:nodeCount": "3", "cluster:instanceType": "t3.medium" };
    await apply(documentStack("cluster-dev", "pulumi-eks", { config }));
    const cluster = await stackUntil(place, "cluster-dev", isReady);
    expect(cluster.status?.outputs).toEqual({ kubeconfig: "[secret]" });

    const apps = await stackUntil(place, "apps-dev", isReady);
    expect(apps.status?.outputs).toEqual({
      kubeconfig: "/var/run/secrets/stacks.pulumi.com/secrets/cluster-dev-outputs/kubeconfig",
      whoami: `system:serviceaccount:${namespace}:deployer`,
    });
    const configMap = ["get", "configmap", "app", "-n", namespace, "--output=jsonpath={.data.text}"];
    expect(await kubectl(configMap)).toBe("deployed");

    // Another token is another kubeconfig: the applications follow by themselves.
    const before = await updatesOf(place, "apps-dev");
    repository.commit(await clusterProject());
    await reconcile(place, "cluster-dev", "rotated");
    await waitFor(async () => (await updatesOf(place, "apps-dev")).length === before.length + 1, {
      timeoutMs: 240_000,
      what: "an update of apps-dev with the new kubeconfig",
    });
    await stackUntil(place, "apps-dev", isReady);

    // First the applications: their cluster must still be there.
    await kubectl(["delete", "stack", "apps-dev", "-n", namespace, "--timeout=240s"]);
    expect(await kubectl(["get", "configmaps", "-n", namespace, "--output=name"])).not.toContain("configmap/app");
  },
  slow,
);
