/**
 * Seed 004, "Creating clusters and applications together": one Stack makes a cluster, another deploys applications to it,
 * with the kubeconfig that the first one has as its output. The cluster is this one; `kubectl` is the real one.
 */
import { beforeAll, expect, test } from "bun:test";

import { network } from "@pko/cluster";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  at,
  deleteStack,
  hasReason,
  isReady,
  javascriptProject,
  kubectl,
  listUpdates,
  messageOf,
  newServiceAccount,
  onFileBackend,
  podWith,
  requestReconcile,
  stackUntil,
  useScene,
} from "../harness.ts";
import { publishKubectl } from "./kubectl-image.ts";

const slow = 420_000;
const scene = useScene("clusters");
let tools: string;

beforeAll(async () => {
  const { namespace } = scene;
  tools = await publishKubectl();
  await applyTo(scene, newServiceAccount("pulumi-stack-sa"), newServiceAccount("deployer"), {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name: "deployer" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "edit" },
    subjects: [{ kind: "ServiceAccount", name: "deployer", namespace }],
  });
}, slow);

/** What a program that makes a cluster would have as its output: an object, with a token of its own. */
async function clusterProject(): Promise<Record<string, string>> {
  const token = await kubectl(["create", "token", "deployer", ...at(scene), "--duration=1h"]);
  // Flattened: a kubeconfig may hold the authority, or name its file.
  const path = "--output=jsonpath={.clusters[0].cluster.certificate-authority-data}";
  const authority = await kubectl(["config", "view", "--raw", "--flatten", path]);
  const named = { cluster: "dev", user: "deployer", namespace: scene.namespace };
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
    metadata: { name, annotations: { "argocd.argoproj.io/sync-wave": "1" } },
    spec: {
      serviceAccountName: "pulumi-stack-sa",
      stack: name,
      projectRepo: scene.git.url(repository),
      branch: "main",
      destroyOnFinalize: true,
      envRefs,
      workspaceTemplate,
      ...spec,
    },
  };
}

function appsStack(): object {
  const mount = { name: "tools", mountPath: "/tools" };
  const copying = {
    name: "kubectl",
    image: tools,
    command: ["sh", "-c", "cp /tools/* /into/"],
    volumeMounts: [{ ...mount, mountPath: "/into" }],
  };
  const volumes = [{ name: "tools", emptyDir: {} }];
  return documentStack("apps-dev", "pulumi-apps", {
    prerequisites: [{ type: "Stack", requirement: "cluster-dev", succeededWithinDuration: "30m" }],
    envRefs: {
      ...onFileBackend.envRefs,
      KUBECONFIG: { type: "StackOutput", stack: "cluster-dev", output: "kubeconfig" },
    },
    workspaceTemplate: podWith({ initContainers: [copying], mounts: [mount], volumes }),
  });
}

test(
  "creating clusters and applications together",
  async () => {
    const { namespace } = scene;
    const repository = scene.git.create("pulumi-eks");
    repository.commit(await clusterProject());
    scene.git.create("pulumi-apps").commit(appsProject);

    // In the wrong order, as two waves that are applied together would be.
    await applyTo(scene, appsStack());
    const waiting = await stackUntil(scene, "apps-dev", hasReason("PrerequisiteNotSatisfied"));
    expect(messageOf(waiting)).toContain("there is no Stack cluster-dev");

    const config = { "aws:region": "us-west-2", "cluster:nodeCount": "3", "cluster:instanceType": "t3.medium" };
    await applyTo(scene, documentStack("cluster-dev", "pulumi-eks", { config }));
    const cluster = await stackUntil(scene, "cluster-dev", isReady);
    expect(cluster.status?.outputs).toEqual({ kubeconfig: "[secret]" });

    const apps = await stackUntil(scene, "apps-dev", isReady);
    expect(apps.status?.outputs).toEqual({
      kubeconfig: "/var/run/secrets/stacks.pulumi.com/secrets/cluster-dev-outputs/kubeconfig",
      whoami: `system:serviceaccount:${namespace}:deployer`,
    });
    const configMap = ["get", "configmap", "app", ...at(scene), "--output=jsonpath={.data.text}"];
    expect(await kubectl(configMap)).toBe("deployed");

    // Another token is another kubeconfig: the applications follow by themselves.
    const before = await listUpdates(scene, "apps-dev");
    repository.commit(await clusterProject());
    await requestReconcile(scene, "cluster-dev", "rotated");
    await waitFor(async () => (await listUpdates(scene, "apps-dev")).length === before.length + 1, {
      timeoutMs: 240_000,
      what: "an update of apps-dev with the new kubeconfig",
    });
    await stackUntil(scene, "apps-dev", isReady);

    // First the applications: their cluster must still be there.
    await deleteStack(scene, "apps-dev");
    expect(await kubectl(["get", "configmaps", ...at(scene), "--output=name"])).not.toContain("configmap/app");
  },
  slow,
);
