/** The test cluster: kubectl, the CRDs, and namespaces for tests. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { customResourceDefinitions, defaultImages } from "@pko/api";
import { operatorNamespace, quickstartObjects } from "@pko/install";
import { clusterKubeconfig, givenKubeconfig, network, repositoryRoot } from "@pko/cluster";
import {
  builtin,
  connect,
  isNotFound,
  kubeconfigCredentials,
  resource,
  type ApplyBody,
  type Client,
  type Credentials,
  type KubeObject,
  type Resource,
} from "@pko/kube";
import { kubectlFor, patience, waitFor, type Kubectl } from "@pko/testkit";
import { test } from "bun:test";

import { Watches } from "../../integration/harness/watches.ts";

/** Shared by all test files of this process. */
export const runFolder = mkdtempSync(join(tmpdir(), "pko-e2e-"));

export const kubectl: Kubectl = kubectlFor({
  kubeconfig: clusterKubeconfig(),
  cacheFolder: join(runFolder, "kubectl-cache"),
});

/** The address at which pods reach the servers that tests start on this machine. */
export const machineAddress = process.env["MACHINE_ADDRESS"] || network.machine;

type DefineTest = (name: string, run: () => Promise<void>, timeoutMs: number) => unknown;

/** `define`, for a test that needs the local cluster: on another cluster it is skipped, and the report shows why. */
export function localTest(define: DefineTest, why: string): DefineTest {
  if (givenKubeconfig === undefined) return define;
  return (name) => test.skip(`${name}: ${why}`, () => undefined);
}

/** Credentials of a cluster administrator. */
export const clusterCredentials = (): Promise<Credentials> => kubeconfigCredentials(clusterKubeconfig());

export async function clusterClient(): Promise<Client> {
  return connect(await clusterCredentials(), patience);
}

/** The namespace of a test's objects, a client for it, and what changes in it. */
export interface Place {
  readonly client: Client;
  readonly namespace: string;
  readonly watches: Watches;
}

/** The caller disposes of the watches. */
export async function placeIn(namespace: string): Promise<Place> {
  const client = await clusterClient();
  return { client, namespace, watches: new Watches({ client, namespace }) };
}

/** kubectl flags that select the namespace. */
export const at = ({ namespace }: Pick<Place, "namespace">): [string, string] => ["-n", namespace];

/**
 * Installs the CRDs and, as every installation does, the admission policies. Repeated until it succeeds, because files
 * that start at the same time create the same objects.
 */
export async function installApi(): Promise<void> {
  await waitFor(applyApi, { timeoutMs: 60_000, what: "the CRDs and the operator's namespace" });
}

/** Most files find what another one has installed. To apply it again takes three seconds of CPU. */
async function applyApi(): Promise<true> {
  if (await isApiInstalled()) return true;
  const crds = join(repositoryRoot, "deploy/crds");
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: admissionPolicies() });
  await kubectl(["apply", "--server-side", "--force-conflicts", "-f", crds, "-f", "-"], { input });
  await kubectl(["wait", "--for=condition=Established", "-f", crds, "--timeout=30s"]);
  await apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: operatorNamespace } });
  return true;
}

async function isApiInstalled(): Promise<boolean> {
  const client = await clusterClient();
  const wanted = [...customResourceDefinitions(), ...(admissionPolicies() as KubeObject[])];
  const found = await Promise.all(
    wanted.map((object) =>
      client.find(servedKind(object, { namespaced: false }), { name: object.metadata.name ?? "" }),
    ),
  );
  const namespace = await client.find(builtin.namespaces, { name: operatorNamespace });
  const isSame = wanted.every((object, at) => contains(found[at], JSON.parse(JSON.stringify(object))));
  return isSame && [namespace, ...found].every(isServed);
}

/** A CRD that another file has applied a moment ago is not established yet. */
function isServed(object: (KubeObject & { readonly status?: CrdStatus }) | undefined): boolean {
  if (!object || object.metadata.deletionTimestamp) return false;
  if (object.kind !== "CustomResourceDefinition") return true;
  return object.status?.conditions?.some(({ type, status }) => type === "Established" && status === "True") === true;
}

interface CrdStatus {
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

type ApiKind = Pick<KubeObject, "apiVersion" | "kind">;

/** With the usual plural of its name. */
export const servedKind = ({ apiVersion, kind }: ApiKind, scope: Pick<Resource, "namespaced">): Resource => {
  const name = kind.toLowerCase();
  const plural = name.endsWith("y") ? `${name.slice(0, -1)}ies` : `${name}s`;
  return resource({ apiVersion, kind, plural, ...scope });
};

/** Whether `whole`, which may have defaults of the API server in addition, has everything that `part` has. */
function contains(whole: unknown, part: unknown): boolean {
  if (typeof part !== "object" || part === null) return whole === part;
  if (typeof whole !== "object" || whole === null) return false;
  if (Array.isArray(part) && part.length !== (whole as readonly unknown[]).length) return false;
  return Object.entries(part).every(([key, value]) => contains((whole as Record<string, unknown>)[key], value));
}

const admissionPolicies = (): object[] =>
  quickstartObjects().filter(
    (object) => "kind" in object && String(object.kind).startsWith("ValidatingAdmissionPolicy"),
  );

export async function apply(...objects: readonly object[]): Promise<void> {
  await kubectl(["apply", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }) });
}

/**
 * Applies objects without a namespace to the namespace of `place`, one after another. As with `kubectl apply --server-side`, a field that
 * was applied before and is missing now is removed.
 */
export async function applyTo({ client, namespace }: Place, ...objects: readonly object[]): Promise<void> {
  for (const object of objects as readonly ApplyBody<KubeObject>[]) {
    const body = { ...object, metadata: { ...object.metadata, namespace } };
    await client.apply(servedKind(object, { namespaced: true }), body, {
      fieldManager: "tests",
      fieldValidation: "Strict",
    });
  }
}

/** Creates a namespace with a volume for the backend's state and the service account that the docs use. */
export async function newNamespace(name: string): Promise<string> {
  const namespace = `${name}-${crypto.randomUUID().slice(0, 8)}`;
  const client = await clusterClient();
  const { namespaces, serviceAccounts, persistentVolumeClaims } = builtin;
  await client.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  await client.create(serviceAccounts, {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: "pulumi", namespace },
  });
  await client.create(persistentVolumeClaims, {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "state", namespace },
    spec: { accessModes: ["ReadWriteMany"], resources: { requests: { storage: "1Gi" } } },
  });
  return namespace;
}

/**
 * Call this while an operator is running. Without one, the finalizers of Stacks and Updates would keep the namespace in
 * Terminating.
 */
export async function deleteStacks(namespace: string): Promise<void> {
  await kubectl(["delete", "stacks.pulumi.com", "--all", "-n", namespace, "--timeout=180s"]);
  await kubectl(["delete", "updates.auto.pulumi.com", "--all", "-n", namespace, "--timeout=60s"]);
}

export async function removeFinalizers(kind: string, namespace: string): Promise<void> {
  const names = (await kubectl(["get", kind, "-n", namespace, "--output=name"])).split("\n").filter(Boolean);
  const patch = JSON.stringify({ metadata: { finalizers: null } });
  for (const name of names) await kubectl(["patch", name, "-n", namespace, "--type=merge", "--patch", patch]);
}

/** The decoded values of a Secret. */
export async function readSecret({ client, namespace }: Place, name: string): Promise<Record<string, string>> {
  const { data = {} } = await client.get(builtin.secrets, { name, namespace });
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
}

export async function removeNamespace(namespace: string): Promise<void> {
  const client = await clusterClient();
  await client.delete(builtin.namespaces, { name: namespace }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}

/** Runs a shell script in a pod of its own that mounts the volume of the backend's state, when no workspace exists. */
export async function readVolume(place: Place, script: string): Promise<string> {
  const name = `reader-${crypto.randomUUID().slice(0, 8)}`;
  const container = {
    name,
    image: defaultImages.baseline,
    imagePullPolicy: "IfNotPresent",
    command: ["sh", "-c", script],
    volumeMounts: [{ name: "state", mountPath: "/state", readOnly: true }],
  };
  const volumes = [{ name: "state", persistentVolumeClaim: { claimName: "state" } }];
  const spec = { restartPolicy: "Never", containers: [container], volumes };
  await applyTo(place, { apiVersion: "v1", kind: "Pod", metadata: { name }, spec });
  try {
    await kubectl(["wait", "--for=jsonpath={.status.phase}=Succeeded", `pod/${name}`, ...at(place), "--timeout=60s"]);
    return await kubectl(["logs", name, ...at(place)]);
  } finally {
    await kubectl(["delete", "pod", name, ...at(place), "--wait=false"]);
  }
}

interface StatePod {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: readonly object[];
}

/** Starts a pod of the workspace image that mounts the state volume of the namespace. */
export async function startStatePod(place: Place, { name, command, env = [] }: StatePod): Promise<void> {
  const volumeMounts = [{ name: "state", mountPath: "/state" }];
  const image = "docker.io/pulumi/pulumi:latest-nonroot";
  const spec = {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: "pulumi", image, command, env, volumeMounts }],
    volumes: [{ name: "state", persistentVolumeClaim: { claimName: "state" } }],
  };
  await applyTo(place, { apiVersion: "v1", kind: "Pod", metadata: { name }, spec });
  await kubectl(["wait", "pod", name, "--for=condition=Ready", "--timeout=120s", ...at(place)]);
}
