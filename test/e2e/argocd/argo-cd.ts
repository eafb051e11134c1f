/**
 * A real Argo CD: its components run as processes on this machine, with their own namespace and our settings. It deploys only
 * to the given namespaces.
 */
import { chmodSync, copyFileSync, mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { clusterKubeconfig, toolPath } from "@pko/cluster";
import { freePort, spawnChild, waitFor, type ChildProcess } from "@pko/testkit";

import { apply, kubectl, removeFinalizers } from "../harness.ts";
import { settingsFile } from "../../integration/argocd/scripts.ts";

const root = join(import.meta.dir, "../../..");

export interface ArgoCd {
  /** The namespace of its Applications. */
  readonly namespace: string;
  /** Calls its HTTP API. */
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
    // No controller is left to handle the finalizers.
    await removeFinalizers("applications", namespace);
    await kubectl(["delete", "namespace", namespace, "--wait=false"]);
  };
  try {
    await waitFor(async () => (await fetch(`${url}/healthz`)).ok, { timeoutMs: 180_000, what: "Argo CD's server" });
  } catch (error) {
    const logs = await Promise.all(children.map((child) => child.log()));
    await stop();
    throw new Error(`Argo CD did not start:\n${logs.join("\n")}`, { cause: error });
  }
  return {
    namespace,
    async call(path, body) {
      const headers = { "content-type": "application/json" };
      const request = body ? { method: "POST", headers, body: JSON.stringify(body) } : {};
      const response = await fetch(`${url}/api/v1/${path}`, request);
      if (!response.ok)
        throw new Error(`Argo CD responded with ${response.status} to ${path}: ${await response.text()}`);
      return (await response.json()) as unknown;
    },
    stop,
  };
}

async function install(namespace: string, namespaces: readonly string[]): Promise<void> {
  const manifests = join(moduleFolder(), "manifests");
  const crds = ["application", "applicationset", "appproject"].map((name) => `${manifests}/crds/${name}-crd.yaml`);
  for (const file of crds) await kubectl(["apply", "--server-side", "--force-conflicts", "-f", file]);
  for (const file of crds) {
    // A new CRD has no conditions at first, which kubectl reports as an error.
    await waitFor(() => kubectl(["wait", "--for=condition=Established", "-f", file, "--timeout=30s"]));
  }
  await apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  // The default settings of an installation.
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
      // An app of apps deploys to the namespace of Argo CD.
      namespaces: [...namespaces, namespace].join(","),
      clusterResources: "true",
      config: "{}",
    },
  });
}

/** The sources of the argocd binary, which include its manifests. */
function moduleFolder(): string {
  const command = ["go", "mod", "download", "-json", "github.com/argoproj/argo-cd/v3"];
  const { stdout, stderr, success } = Bun.spawnSync(command, { cwd: join(root, "hack/cluster/go/argocd") });
  if (!success) throw new Error(`cannot download the manifests of Argo CD: ${stdout.toString()}${stderr.toString()}`);
  return (JSON.parse(stdout.toString()) as { Dir: string }).Dir;
}

async function startComponents(namespace: string): Promise<{ children: ChildProcess[]; port: number }> {
  const folder = mkdtempSync(join(tmpdir(), "pko-argocd-"));
  const [redis, repositories, port, ...metrics] = await Promise.all(Array.from({ length: 6 }, freePort));
  // The repo server runs it for every commit; its image has it on the PATH.
  const verifier = join(folder, "git-verify-wrapper.sh");
  copyFileSync(join(moduleFolder(), "hack/git-verify-wrapper.sh"), verifier);
  chmodSync(verifier, 0o755);
  const environment = [
    `PATH=${folder}:${process.env["PATH"]}`,
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
  // Both binaries contain several programs, and the name of the command selects one.
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
    // The default path of the CA is for TLS.
    start(
      argocd,
      "argocd-repo-server",
      ...store,
      ...local,
      ...ports(repositories, metrics[0]),
      "--disable-tls",
      "--client-ca-path=",
    ),
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
