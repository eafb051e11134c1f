/** The tests' cluster: its kubectl, our API on it, and namespaces to work in. */
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { operatorNamespace } from "@pko/api";
import { clusterKubeconfig, repositoryRoot } from "@pko/cluster";
import { connect, kubeconfigCredentials, type Client, type Credentials } from "@pko/kube";
import { kubectlFor, type Kubectl } from "@pko/testkit";

/** Of the whole run: what several test files share. */
export const runFolder = mkdtempSync(join(tmpdir(), "pko-e2e-"));

export const kubectl: Kubectl = kubectlFor({
  kubeconfig: clusterKubeconfig(),
  cacheFolder: join(runFolder, "kubectl-cache"),
});

/** Of a cluster admin. */
export const clusterCredentials = (): Promise<Credentials> => kubeconfigCredentials(clusterKubeconfig());

export async function clusterClient(): Promise<Client> {
  return connect(await clusterCredentials());
}

/** Where a test's objects are. */
export interface Place {
  readonly client: Client;
  readonly namespace: string;
}

/** The words that tell kubectl where. */
export const at = ({ namespace }: Pick<Place, "namespace">): [string, string] => ["-n", namespace];

export async function installApi(): Promise<void> {
  const crds = join(repositoryRoot, "deploy/crds");
  await kubectl(["apply", "--server-side", "--force-conflicts", "-f", crds]);
  for (const file of readdirSync(crds)) {
    await kubectl(["wait", "--for=condition=Established", "-f", join(crds, file), "--timeout=30s"]);
  }
  await apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: operatorNamespace } });
}

export async function apply(...objects: readonly object[]): Promise<void> {
  await kubectl(["apply", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }) });
}

/** Objects that name no namespace, into that of the place. */
export async function applyTo(place: Pick<Place, "namespace">, ...objects: readonly object[]): Promise<void> {
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
  await kubectl(["apply", ...at(place), "-f", "-"], { input });
}

/** A namespace with a volume for the backend's state and the service account of the documents. */
export async function newNamespace(name: string): Promise<string> {
  const namespace = `${name}-${crypto.randomUUID().slice(0, 8)}`;
  await apply(
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "pulumi", namespace } },
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "state", namespace },
      spec: { accessModes: ["ReadWriteMany"], resources: { requests: { storage: "1Gi" } } },
    },
  );
  return namespace;
}

/**
 * While an operator is there to let them go: without one, the namespace would be Terminating for ever. So it would be with
 * Updates that are held, which go after their Stack.
 */
export async function deleteStacks(namespace: string): Promise<void> {
  await kubectl(["delete", "stacks.pulumi.com", "--all", "-n", namespace, "--timeout=180s"]);
  await kubectl(["delete", "updates.auto.pulumi.com", "--all", "-n", namespace, "--timeout=60s"]);
}

/** Takes away whatever holds the objects of a kind. */
export async function letGo(kind: string, namespace: string): Promise<void> {
  const names = (await kubectl(["get", kind, "-n", namespace, "--output=name"])).split("\n").filter(Boolean);
  const patch = JSON.stringify({ metadata: { finalizers: null } });
  for (const name of names) await kubectl(["patch", name, "-n", namespace, "--type=merge", "--patch", patch]);
}

export async function removeNamespace(namespace: string): Promise<void> {
  await kubectl(["delete", "namespace", namespace, "--wait=false", "--ignore-not-found"]);
}
