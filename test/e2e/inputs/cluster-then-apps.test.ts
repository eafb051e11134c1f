/**
 * Creating clusters and applications together: one Stack creates a cluster, another deploys applications to it, with the
 * kubeconfig from the outputs of the first. The cluster is the test cluster.
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
  readyMessage,
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

/** A project whose output is a kubeconfig with a new token, as if it had created a cluster. */
async function clusterProject(): Promise<Record<string, string>> {
  const token = await kubectl(["create", "token", "deployer", ...at(scene), "--duration=1h"]);
  // Flattened, because the kubeconfig may contain the CA or the name of its file.
  const path = "--output=jsonpath={.clusters[0].cluster.certificate-authority-data}";
  const ca = await kubectl(["config", "view", "--raw", "--flatten", path]);
  const context = { cluster: "dev", user: "deployer", namespace: scene.namespace };
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: "dev",
        cluster: { server: network.apiServerUrl, "certificate-authority-data": ca },
      },
    ],
    users: [{ name: "deployer", user: { token: token.trim() } }],
    contexts: [{ name: "dev", context }],
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

/** Its resource is a ConfigMap, which `kubectl` creates with the KUBECONFIG of the program. */
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

/** As in the docs, except for the namespace, the backend and the repository, and that the cluster is not destroyed. */
function documentStack(name: string, repository: string, spec: object): object {
  const { envRefs, workspaceTemplate } = onFileBackend;
  return {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name, annotations: { "argocd.argoproj.io/sync-wave": "1" } },
    spec: {
      serviceAccountName: "pulumi-stack-sa",
      stack: name,
      ...scene.git.source(repository),
      envRefs,
      workspaceTemplate,
      ...spec,
    },
  };
}

function appsStack(): object {
  const mount = { name: "tools", mountPath: "/tools" };
  const copyKubectl = {
    name: "kubectl",
    image: tools,
    command: ["sh", "-c", "cp /tools/* /into/"],
    volumeMounts: [{ ...mount, mountPath: "/into" }],
  };
  const volumes = [{ name: "tools", emptyDir: {} }];
  return documentStack("apps-dev", "pulumi-apps", {
    destroyOnFinalize: true,
    prerequisites: [{ type: "Stack", requirement: "cluster-dev", succeededWithinDuration: "30m" }],
    envRefs: {
      ...onFileBackend.envRefs,
      KUBECONFIG: { type: "StackOutput", stack: "cluster-dev", output: "kubeconfig" },
    },
    workspaceTemplate: podWith({ initContainers: [copyKubectl], mounts: [mount], volumes }),
  });
}

test(
  "a Stack waits for a cluster of another Stack, deploys to it, and follows its kubeconfig",
  async () => {
    const { namespace } = scene;
    const repository = scene.git.create("pulumi-eks");
    repository.commit(await clusterProject());
    scene.git.create("pulumi-apps").commit(appsProject);

    // In the wrong order.
    await applyTo(scene, appsStack());
    const waiting = await stackUntil(scene, "apps-dev", hasReason("PrerequisiteNotSatisfied"));
    expect(readyMessage(waiting)).toContain("there is no Stack cluster-dev");

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

    // A new token changes the kubeconfig, which triggers an update of the applications.
    const before = await listUpdates(scene, "apps-dev");
    repository.commit(await clusterProject());
    await requestReconcile(scene, "cluster-dev", "rotated");
    await waitFor(async () => (await listUpdates(scene, "apps-dev")).length === before.length + 1, {
      timeoutMs: 240_000,
      what: "an update of apps-dev with the new kubeconfig",
    });
    await stackUntil(scene, "apps-dev", isReady);

    // The applications first, while their cluster still exists.
    await deleteStack(scene, "apps-dev");
    expect(await kubectl(["get", "configmaps", ...at(scene), "--output=name"])).not.toContain("configmap/app");
  },
  slow,
);
