/**
 * A real Argo CD: its components as processes on this machine, in a namespace of its own, told of our kinds by the
 * command of our page. It deploys into the given namespaces and sees no others.
 */
import { mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { clusterKubeconfig, toolPath } from "@pko/cluster";
import { freePort, spawnChild, waitFor, type ChildProcess } from "@pko/testkit";

import { apply, kubectl, removeFinalizers } from "../harness.ts";
import { settingsFile } from "./scripts.ts";

const root = join(import.meta.dir, "../../..");

export interface ArgoCd {
  /** Where its Applications are. */
  readonly namespace: string;
  /** Its API, as its web page and its command line call it. */
  call(path: string, body?: object): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startArgoCd(namespaces: readonly string[]): Promise<ArgoCd> {
  const namespace = `argocd-${crypto.randomUUID().slice(0, 8)}`;
  await install(namespace, namespaces);
  const { children, port } = await startComponents(namespace);
  const url = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    await Promise.all(children.map((child) => child.stop()));
    // Nobody is there any more to do what their finalizers ask for.
    await removeFinalizers("applications", namespace);
    await kubectl(["delete", "namespace", namespace, "--wait=false"]);
  };
  try {
    await waitFor(async () => (await fetch(`${url}/healthz`)).ok, { timeoutMs: 60_000, what: "Argo CD's server" });
  } catch (error) {
    const logs = await Promise.all(children.map((child) => child.log()));
    await stop();
    throw new Error(`Argo CD does not start:\n${logs.join("\n")}`, { cause: error });
  }
  return {
    namespace,
    async call(path, body) {
      const headers = { "content-type": "application/json" };
      const request = body ? { method: "POST", headers, body: JSON.stringify(body) } : {};
      const answer = await fetch(`${url}/api/v1/${path}`, request);
      if (!answer.ok) throw new Error(`Argo CD answers ${answer.status} to ${path}: ${await answer.text()}`);
      return (await answer.json()) as unknown;
    },
    stop,
  };
}

async function install(namespace: string, namespaces: readonly string[]): Promise<void> {
  const manifests = join(moduleFolder(), "manifests");
  const kinds = ["application", "applicationset", "appproject"].map((name) => `${manifests}/crds/${name}-crd.yaml`);
  for (const file of kinds) await kubectl(["apply", "--server-side", "--force-conflicts", "-f", file]);
  for (const file of kinds) {
    // At first a new kind has no conditions at all, which kubectl takes for an error.
    await waitFor(() => kubectl(["wait", "--for=condition=Established", "-f", file, "--timeout=30s"]));
  }
  await apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  // Its own settings, as everybody has them; the page of its kustomization is not among them.
  for (const name of ["argocd-cm", "argocd-cmd-params-cm", "argocd-rbac-cm", "argocd-secret"]) {
    await kubectl(["apply", "-n", namespace, "-f", `${manifests}/base/config/${name}.yaml`]);
  }
  await kubectl(["patch", "configmap", "argocd-cm", "--namespace", namespace, "--patch-file", settingsFile]);
  await apply({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "in-cluster", namespace, labels: { "argocd.argoproj.io/secret-type": "cluster" } },
    stringData: {
      name: "in-cluster",
      server: "https://kubernetes.default.svc",
      // An app of apps deploys into Argo CD's own.
      namespaces: [...namespaces, namespace].join(","),
      clusterResources: "true",
      config: "{}",
    },
  });
}

/** Where the sources of the program that was built are: its manifests are there, too. */
function moduleFolder(): string {
  const command = ["go", "mod", "download", "-json", "github.com/argoproj/argo-cd/v3"];
  const { stdout, stderr, success } = Bun.spawnSync(command, { cwd: join(root, "hack/cluster/go/argocd") });
  if (!success) throw new Error(`Argo CD's manifests cannot be had: ${stdout.toString()}${stderr.toString()}`);
  return (JSON.parse(stdout.toString()) as { Dir: string }).Dir;
}

async function startComponents(namespace: string): Promise<{ children: ChildProcess[]; port: number }> {
  const folder = mkdtempSync(join(tmpdir(), "pko-argocd-"));
  const [redis, repositories, port, ...metrics] = await Promise.all(Array.from({ length: 6 }, freePort));
  const environment = [
    `HOME=${folder}`,
    `KUBECONFIG=${clusterKubeconfig()}`,
    "ARGOCD_FAKE_IN_CLUSTER=true",
    "ARGOCD_GPG_ENABLED=false",
    `ARGOCD_ASK_PASS_SOCK=${folder}/ask-pass.sock`,
    `ARGOCD_PLUGINSOCKFILEPATH=${folder}`,
    `ARGOCD_TLS_DATA_PATH=${folder}`,
    `ARGOCD_SSH_DATA_PATH=${folder}`,
    `TMPDIR=${folder}`,
  ];
  // Both are many programs in one, and go by the name that they are called.
  const start = (program: string, name: string, ...flags: readonly string[]): ChildProcess => {
    symlinkSync(program, join(folder, name));
    const command = ["env", ...environment, join(folder, name), ...flags];
    return spawnChild({ command, logFile: join(folder, `${name}.log`) });
  };
  const argocd = toolPath("argocd");
  const store = ["--redis", `127.0.0.1:${redis}`];
  const client = [...store, "--repo-server", `127.0.0.1:${repositories}`, "--repo-server-plaintext"];
  const local = ["--address", "127.0.0.1", "--metrics-address", "127.0.0.1"];
  const children = [
    start("/usr/bin/redis-check-rdb", "redis-server", "--port", `${redis}`, "--bind", "127.0.0.1", "--save", ""),
    start(argocd, "argocd-repo-server", ...store, ...local, ...ports(repositories, metrics[0]), "--disable-tls"),
    start(
      argocd,
      "argocd-application-controller",
      ...client,
      "--namespace",
      namespace,
      "--metrics-port",
      `${metrics[1]}`,
      "--self-heal-timeout-seconds",
      "1",
    ),
    start(
      argocd,
      "argocd-server",
      ...client,
      ...local,
      ...ports(port, metrics[2]),
      "--namespace",
      namespace,
      "--insecure",
      "--disable-auth",
    ),
  ];
  return { children, port: port ?? 0 };
}

const ports = (port: number | undefined, metrics: number | undefined): string[] => [
  "--port",
  `${port}`,
  "--metrics-port",
  `${metrics}`,
];
