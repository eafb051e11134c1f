/** The operator on the cluster: its API installed, its agent's image published, its process on this machine, where a test may kill it. */
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { operatorNamespace, type Stack, type Update } from "@pko/api";
import { clusterKubeconfig, network, publishOperatorImage } from "@pko/cluster";
import { builtin, connect, kubeconfigCredentials, type Client } from "@pko/kube";
import { stacks, updates } from "@pko/operator";
import { kubectlFor, spawnChild, waitFor, type ChildProcess, type Kubectl } from "@pko/testkit";

import { operatorAccount } from "./account.ts";

const root = join(import.meta.dir, "../..");
const folder = mkdtempSync(join(tmpdir(), "pko-e2e-"));
const kubeconfig = clusterKubeconfig();

export const kubectl: Kubectl = kubectlFor({ kubeconfig, cacheFolder: join(folder, "kubectl-cache") });

export interface Operator {
  readonly client: Client;
  /** What it has logged, as one text. */
  log(): Promise<string>;
  /** Ends it as a crash does, and starts another. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

let image: Promise<string> | undefined;

/** The name of the operator's image, built and published once for all test files of a run. */
export function publishedImage(): Promise<string> {
  image ??= publishOperatorImage();
  return image;
}

/** Serves the given namespaces only, with the rights that an installation gives it: what else the cluster holds stays untouched. */
export async function startOperator(namespaces: readonly string[], ...flags: string[]): Promise<Operator> {
  return await startOperatorWith({ namespaces, flags });
}

export interface OperatorOptions {
  readonly namespaces: readonly string[];
  readonly flags?: readonly string[];
  /** Variables of the operator's own, as a chart's `extraEnv` sets them. */
  readonly env?: Readonly<Record<string, string>>;
}

export async function startOperatorWith({ namespaces, flags = [], env = {} }: OperatorOptions): Promise<Operator> {
  await installApi();
  const agentImage = await publishedImage();
  const id = crypto.randomUUID();
  const logFile = join(folder, `operator-${id}.log`);
  const ownKubeconfig = join(folder, `kubeconfig-${id}`);
  const account = await operatorAccount({ kubectl, home: operatorNamespace });
  await Bun.write(ownKubeconfig, account.kubeconfig);
  const start = (): ChildProcess =>
    spawnChild({
      command: [
        process.execPath,
        join(root, "packages/operator/src/main.ts"),
        `--kubeconfig=${ownKubeconfig}`,
        `--agent-image=${agentImage}`,
        `--watch-namespaces=${namespaces.join(",")}`,
        "--probe-address=127.0.0.1:0",
        "--metrics-address=127.0.0.1:0",
        "--allow-http",
        `--allow-addresses=${network.machine}`,
        ...flags,
      ],
      logFile,
      env,
    });
  let operator = start();
  return {
    client: connect(await kubeconfigCredentials(kubeconfig)),
    log: () => Bun.file(logFile).text(),
    async crash() {
      await operator.stop("SIGKILL");
      operator = start();
    },
    async stop() {
      await operator.stop();
      await account.remove();
    },
  };
}

export async function installApi(): Promise<void> {
  const crds = join(root, "deploy/crds");
  await kubectl(["apply", "--server-side", "--force-conflicts", "-f", crds]);
  for (const file of readdirSync(crds)) {
    await kubectl(["wait", "--for=condition=Established", "-f", join(crds, file), "--timeout=30s"]);
  }
  await apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: operatorNamespace } });
}

export async function apply(...objects: readonly object[]): Promise<void> {
  await kubectl(["apply", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }) });
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

/** Its Stacks first, while an operator is there to let them go. */
export async function clearNamespace(namespace: string): Promise<void> {
  await kubectl(["delete", "stacks", "--all", "-n", namespace, "--timeout=120s"]);
  await removeNamespace(namespace);
}

export async function removeNamespace(namespace: string): Promise<void> {
  await kubectl(["delete", "namespace", namespace, "--wait=false"]);
}

/** What every Stack here shares: a file backend on the namespace's volume, and its passphrase. */
export const onFileBackend = {
  serviceAccountName: "pulumi",
  envRefs: {
    PULUMI_BACKEND_URL: { type: "Literal", literal: { value: "file:///state" } },
    PULUMI_CONFIG_PASSPHRASE: { type: "Literal", literal: { value: "passphrase" } },
  },
  workspaceTemplate: {
    spec: {
      podTemplate: {
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: "pulumi", volumeMounts: [{ name: "state", mountPath: "/state" }] }],
          volumes: [{ name: "state", persistentVolumeClaim: { claimName: "state" } }],
        },
      },
    },
  },
} as const;

export interface Place {
  readonly client: Client;
  readonly namespace: string;
}

export async function getStack({ client, namespace }: Place, name: string): Promise<Stack> {
  return await client.get(stacks, { name, namespace });
}

export async function updatesOf({ client, namespace }: Place, name: string): Promise<Update[]> {
  const { items } = await client.list(updates, { namespace, labelSelector: `pulumi.com/stack-name=${name}` });
  return items.toSorted((a, b) => `${a.status?.startTime}`.localeCompare(`${b.status?.startTime}`));
}

/** The Stack once its status satisfies the test's wish; the status as it stands when time runs out. */
export async function stackUntil(place: Place, name: string, wish: (stack: Stack) => boolean): Promise<Stack> {
  let last: Stack | undefined;
  const satisfied = async (): Promise<Stack | false> => {
    last = await getStack(place, name);
    return wish(last) && last;
  };
  try {
    return await waitFor(satisfied, { timeoutMs: 240_000, pollMs: 100, what: `Stack ${name}: ${wish.toString()}` });
  } catch (error) {
    throw new Error(`${String(error)}\nits status: ${JSON.stringify(last?.status, undefined, 2)}`, { cause: error });
  }
}

export function isReady({ metadata, status }: Stack): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "True" && ready.observedGeneration === metadata.generation;
}

/** The identity of the Stack's pod: another one is another pod. */
export async function podOf({ client, namespace }: Place, stack: string): Promise<string> {
  const { metadata } = await client.get(builtin.pods, { name: `${stack}-workspace-0`, namespace });
  return metadata.uid ?? "";
}

/** Asks for an update, by a value that was not there before. */
export async function reconcile({ namespace }: Place, stack: string, request: string): Promise<void> {
  const annotation = `pulumi.com/reconciliation-request=${request}`;
  await kubectl(["annotate", "stack", stack, "-n", namespace, "--overwrite", annotation]);
}

/** An output as those get it who use it: secret ones too. */
export async function outputOf({ client, namespace }: Place, stack: string, output: string): Promise<string> {
  const { data } = await client.get(builtin.secrets, { name: `${stack}-outputs`, namespace });
  return Buffer.from(data?.[output] ?? "", "base64").toString();
}
