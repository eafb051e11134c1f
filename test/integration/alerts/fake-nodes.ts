/** Nodes without machines: objects with heartbeats, and an endpoint at which the API server reads the logs of pods. */
import { createCa } from "@pko/cluster";
import { builtin, resource, timestamp, type ApiObject, type Client } from "@pko/kube";
import type { Node } from "kubernetes-types/core/v1";

export const nodes = resource<ApiObject<Node>>({ apiVersion: "v1", kind: "Node", plural: "nodes", namespaced: false });

interface NodesOptions {
  readonly client: Client;
  readonly names: readonly string[];
  /** The file with the log of a pod, if it runs. */
  readonly logFile: (namespace: string, pod: string) => string | undefined;
}

const heartbeatMs = 2000;
const leaseNamespace = "kube-node-lease";

export class FakeNodes implements AsyncDisposable {
  readonly #options: NodesOptions;
  readonly #lost = new Set<string>();
  readonly #server: Bun.Server<undefined>;
  readonly #stop = new AbortController();
  #beating: Promise<void> = Promise.resolve();

  private constructor(options: NodesOptions, server: Bun.Server<undefined>) {
    this.#options = options;
    this.#server = server;
  }

  static async open(options: NodesOptions): Promise<FakeNodes> {
    const { cert, key } = await (await createCa("kubelets")).issue({ commonName: "kubelet", ips: ["127.0.0.1"] });
    const fetch = (request: Request): Promise<Response> => readLog(new URL(request.url), options.logFile);
    const opened = new FakeNodes(options, Bun.serve({ hostname: "127.0.0.1", port: 0, tls: { cert, key }, fetch }));
    for (const name of options.names) await opened.#create(name);
    // Until a test needs another one, pods run on the first node.
    for (const name of options.names.slice(1)) await opened.setSchedulable(name, false);
    opened.#beating = opened.#beat();
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#beating;
    await this.#server.stop(true);
  }

  isLost(name: string): boolean {
    return this.#lost.has(name);
  }

  /** No more heartbeats: the node lifecycle controller finds that out. */
  lose(name: string): void {
    this.#lost.add(name);
  }

  async setSchedulable(name: string, isSchedulable: boolean): Promise<void> {
    const patch = { type: "merge", body: { spec: { unschedulable: !isSchedulable } } } as const;
    await this.#options.client.patch(nodes, { name }, { patch });
  }

  async #create(name: string): Promise<void> {
    const { client } = this.#options;
    const now = timestamp(Date.now());
    const resources = { cpu: "16", memory: "32Gi", pods: "110", "ephemeral-storage": "100Gi" };
    const ready = {
      type: "Ready",
      status: "True",
      reason: "KubeletReady",
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    };
    await client.create(nodes, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" } },
      status: {
        capacity: resources,
        allocatable: resources,
        conditions: [ready],
        addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
        daemonEndpoints: { kubeletEndpoint: { Port: this.#server.port ?? 0 } },
      },
    });
  }

  async #beat(): Promise<void> {
    const { client, names } = this.#options;
    while (!this.#stop.signal.aborted) {
      for (const name of names.filter((each) => !this.#lost.has(each))) {
        const renewTime = new Date().toISOString().replace("Z", "000Z");
        const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime };
        const { apiVersion, kind } = builtin.leases;
        const body = { apiVersion, kind, metadata: { namespace: leaseNamespace, name }, spec };
        await client.apply(builtin.leases, body, { fieldManager: "kubelet" }).catch(() => undefined);
      }
      await Bun.sleep(heartbeatMs);
    }
  }
}

/** What `kubectl logs` requests: `/containerLogs/NAMESPACE/POD/CONTAINER?tailLines=20`. */
async function readLog({ pathname, searchParams }: URL, logFile: NodesOptions["logFile"]): Promise<Response> {
  const [, , namespace = "", pod = ""] = pathname.split("/");
  const file = logFile(namespace, pod);
  if (file === undefined) return new Response("the pod does not run", { status: 404 });
  const lines = (await Bun.file(file).text()).trimEnd().split("\n");
  const tail = Number(searchParams.get("tailLines") ?? lines.length);
  return new Response(`${lines.slice(-tail).join("\n")}\n`);
}
