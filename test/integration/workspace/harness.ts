/** The Workspace controller on a real API server, with a simulated kubelet and simulated agents. */
import { statefulSetNameOf, type Update, type Workspace, type WorkspaceSpec } from "@pko/api";
import {
  builtin,
  eventRecorder,
  manager,
  metricsRegistry,
  reflector,
  type Client,
  type ApiObject,
  type KubeObject,
  type ObjectRef,
  type Reflector,
  type Resource,
} from "@pko/kube";
import {
  operatorCa,
  podIndexers,
  programs,
  updateIndexers,
  updates,
  workspaceController,
  workspaces,
  type AgentPod,
  type Preparation,
  type Run,
  type Preparations,
  type WorkspaceSettings,
} from "@pko/operator";
import type { PrepareRequest, PrepareResult } from "@pko/rpc";
import {
  checkStatus,
  faultProxy,
  testNamespace,
  waitFor,
  type FaultProxy,
  type ProxiedRequest,
  type TestNamespace,
} from "@pko/testkit";
import { expect } from "bun:test";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import { OperatorRights } from "../../rights/operator-rights.ts";
import { apiServerWithApi } from "../api/install.ts";

export const testTimeoutMs = 60_000;

export const prepared: PrepareResult = {
  ok: true,
  prepared: {
    revision: "r",
    stack: "dev",
    project: { name: "p", runtime: "yaml" },
    pulumiVersion: "3.259.0",
    changed: { source: true, dependencies: false, stack: true, config: true },
    timings: { source: 1, install: 1, stack: 1, config: 1 },
  },
};

/** Agents that answer what the test sets. */
class SimulatedAgents implements Preparations {
  readonly requests: { readonly pod: AgentPod; readonly request: PrepareRequest }[] = [];
  answer: Preparation = { state: "done", result: prepared };
  retries = 0;
  /** Answered from the next retry on. */
  whileRetrying: Preparation | undefined;
  forgotten = 0;

  ensure(pod: AgentPod, request: PrepareRequest): Preparation {
    const last = this.requests.at(-1);
    if (!last || !Bun.deepEquals({ pod, request }, last)) this.requests.push({ pod, request });
    return this.answer;
  }

  retry(): void {
    this.retries++;
    if (this.whileRetrying) this.answer = this.whileRetrying;
  }

  renew(): void {}

  hasResponded(): boolean {
    return this.requests.length > 0 && this.answer.state !== "unreachable";
  }

  forget(): void {
    this.forgotten++;
  }
}

interface StageOptions {
  /** Of the namespace. */
  readonly labels?: Record<string, string>;
  /** Configures a proxy between the operator and the API server, before the operator starts. */
  readonly proxied?: (proxy: FaultProxy) => void;
}

interface StageParts {
  readonly place: TestNamespace;
  readonly rights: OperatorRights;
  readonly proxy?: FaultProxy;
}

export class Stage implements AsyncDisposable {
  readonly place: TestNamespace;
  /** The operator's. */
  readonly rights: OperatorRights;
  readonly #proxy: FaultProxy | undefined;
  readonly agents = new SimulatedAgents();
  /** The state of the run in the pod, as the Update controller would report it. */
  run: Run | undefined;
  readonly #stop = new AbortController();
  readonly #run: Promise<unknown>;
  readonly #events: ReturnType<typeof eventRecorder>;
  readonly #updates: Reflector<Update>;
  readonly #metrics = metricsRegistry();
  #pods = 0;

  static async open(settings: Partial<WorkspaceSettings> = {}, options: StageOptions = {}): Promise<Stage> {
    const server = await apiServerWithApi();
    const place = await testNamespace({ server, labels: options.labels ?? {} });
    const metadata = { name: "default", namespace: place.name };
    await place.client.create(builtin.serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata });
    const rights = await OperatorRights.in(place);
    const proxy = options.proxied && (await faultProxy(rights.credentials));
    if (proxy) options.proxied?.(proxy);
    return new Stage(
      { place, rights, ...(proxy && { proxy }) },
      { agentImage: "agent:1", idleTimeoutMs: 0, ...settings },
    );
  }

  private constructor({ place, rights, proxy }: StageParts, settings: WorkspaceSettings) {
    this.place = place;
    this.rights = rights;
    this.#proxy = proxy;
    const client = proxy ? rights.connect(proxy.credentials) : rights.client;
    const { name: namespace } = place;
    const scope = { namespaces: [namespace] };
    const reflectors = {
      workspaces: reflector(client, workspaces, scope),
      updates: reflector(client, updates, { ...scope, indexers: updateIndexers }),
      statefulSets: reflector(client, builtin.statefulSets, scope),
      pods: reflector(client, builtin.pods, { ...scope, indexers: podIndexers }),
      programs: reflector(client, programs, scope),
    };
    this.#updates = reflectors.updates;
    this.#events = eventRecorder({ client, component: "test" });
    const controller = workspaceController({
      client,
      reflectors,
      ca: operatorCa({ client, namespace }),
      preparations: this.agents,
      runs: { find: () => this.run },
      events: this.#events,
      settings,
      metrics: this.#metrics,
    });
    this.reconcile = (name) => controller.enqueue(`${namespace}/${name}`);
    this.#run = manager({ reflectors, controllers: [controller] }).run(this.#stop.signal);
  }

  readonly reconcile: (name: string) => void;

  /** Stops this operator, and starts another one for its namespace, as in an upgrade. */
  async succeededBy(settings: Partial<WorkspaceSettings>): Promise<Stage> {
    this.#stop.abort();
    expect(await this.#run).toBe("clean");
    const { place, rights } = this;
    return new Stage({ place, rights }, { agentImage: "agent:1", idleTimeoutMs: 0, ...settings });
  }

  /** The operator's requests, if it uses a proxy. */
  requests(verb: string, resource: string): readonly ProxiedRequest[] {
    return this.#proxy?.requests.filter((request) => request.verb === verb && request.resource === resource) ?? [];
  }

  /**
   * Reconciles the Workspace, and waits until the controller has done so and is idle: what it has not written by then, it
   * does not write.
   */
  async reconciled(name: string): Promise<void> {
    const before = this.#figure("workqueue_work_duration_seconds_count");
    this.reconcile(name);
    await waitFor(
      () =>
        this.#figure("workqueue_work_duration_seconds_count") > before &&
        this.#figure("workqueue_depth") === 0 &&
        this.#figure("controller_runtime_active_workers") === 0,
      { timeoutMs: 15_000, what: `the reconcile of ${name} to end` },
    );
  }

  #figure(name: string): number {
    return Number(new RegExp(`^${name}\\{.*\\} (\\d+)$`, "m").exec(this.#metrics.expose())?.[1] ?? 0);
  }

  get client(): Client {
    return this.place.client;
  }

  at(name: string): ObjectRef {
    return { namespace: this.place.name, name };
  }

  async create(name: string, spec: WorkspaceSpec): Promise<void> {
    const { apiVersion, kind } = workspaces;
    await this.client.create(workspaces, { apiVersion, kind, metadata: this.at(name), spec });
  }

  async change(name: string, spec: object): Promise<void> {
    await this.client.patch(workspaces, this.at(name), { patch: { type: "merge", body: { spec } } });
  }

  async workspace(name: string): Promise<Workspace> {
    const workspace = await this.client.get(workspaces, this.at(name));
    checkStatus(workspace);
    return workspace;
  }

  async statefulSet(name: string): Promise<ApiObject<StatefulSet>> {
    return await this.client.get(builtin.statefulSets, this.at(statefulSetNameOf(name)));
  }

  /** Waits until the condition Ready has this reason and its message contains this text. */
  async becomes(name: string, reason: string, text = ""): Promise<Workspace> {
    let last: unknown;
    try {
      return await waitFor(
        async () => {
          const workspace = await this.workspace(name);
          last = workspace.status;
          const ready = workspace.status?.conditions?.find(({ type }) => type === "Ready");
          const isSeen = workspace.status?.observedGeneration === workspace.metadata.generation;
          return isSeen && ready?.reason === reason && ready.message.includes(text) && workspace;
        },
        { timeoutMs: 15_000, what: `${name} to be ${reason} ${text}` },
      );
    } catch (error) {
      throw new Error(`it is ${JSON.stringify(last)}`, { cause: error });
    }
  }

  /** Creates a pod of the current template, like the StatefulSet's controller. */
  async simulatePod(name: string, status: Pod["status"] = running(++this.#pods)): Promise<ApiObject<Pod>> {
    const ref = this.at(`${statefulSetNameOf(name)}-0`);
    await this.client.delete(builtin.pods, ref, { gracePeriodSeconds: 0 }).catch(() => undefined);
    const set = await waitFor(async () => await this.statefulSet(name));
    const { template } = set.spec ?? {};
    const revision = `revision-${set.metadata.generation}`;
    await this.simulateRevision(name, revision);
    const labels = { ...template?.metadata?.labels, "controller-revision-hash": revision };
    await this.client.create(builtin.pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...ref, labels, ownerReferences: [controllerOf(builtin.statefulSets, set)] },
      ...(template?.spec && { spec: template.spec }),
    });
    return await this.setPod(name, status);
  }

  /** Observes the current template, like the StatefulSet's controller. */
  async simulateRevision(name: string, updateRevision: string): Promise<void> {
    const { metadata } = await this.statefulSet(name);
    const status = { observedGeneration: metadata.generation, replicas: 1, updateRevision };
    await this.client.patch(builtin.statefulSets, this.at(statefulSetNameOf(name)), {
      patch: { type: "merge", body: { status } },
      subresource: "status",
    });
  }

  async setPod(name: string, status: Pod["status"]): Promise<ApiObject<Pod>> {
    return await this.client.patch(builtin.pods, this.at(`${statefulSetNameOf(name)}-0`), {
      patch: { type: "merge", body: { status } },
      subresource: "status",
    });
  }

  async removePod(name: string): Promise<void> {
    await this.client.delete(builtin.pods, this.at(`${statefulSetNameOf(name)}-0`), { gracePeriodSeconds: 0 });
  }

  async createUpdate(name: string, workspaceName: string): Promise<void> {
    const { apiVersion, kind } = updates;
    const spec = { workspaceName, stackName: "dev", type: "up" };
    await this.client.create(updates, { apiVersion, kind, metadata: this.at(name), spec });
  }

  /** Returns when the controller's store shows it. */
  async setUpdate(name: string, status: Update["status"]): Promise<void> {
    const { metadata } = await this.client.patch(updates, this.at(name), {
      patch: { type: "merge", body: { status } },
      subresource: "status",
    });
    const known = (): Update | undefined => this.#updates.store.get(`${this.place.name}/${name}`);
    await waitFor(() => known()?.metadata.resourceVersion === metadata.resourceVersion, {
      what: `${name} in the store`,
    });
  }

  async eventReasons(): Promise<string[]> {
    await this.#events.flush();
    const { items } = await this.client.list(builtin.events, { namespace: this.place.name });
    return items.map(({ reason = "" }) => reason);
  }

  /** Creates a workspace and makes it ready. */
  async ready(name: string, spec: WorkspaceSpec): Promise<Workspace> {
    await this.create(name, spec);
    await this.becomes(name, "WaitingForReplicas");
    await this.simulatePod(name);
    return await this.becomes(name, "Succeeded");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    expect(await this.#run).toBe("clean");
    await this.#proxy?.close();
    await this.place.remove();
    await this.rights[Symbol.asyncDispose]();
  }
}

/** An owner reference to a controller. */
export const controllerOf = (resource: Resource, { metadata }: Pick<KubeObject, "metadata">) => ({
  apiVersion: resource.apiVersion,
  kind: resource.kind,
  name: metadata.name ?? "",
  uid: metadata.uid ?? "",
  controller: true,
});

export function running(number: number): NonNullable<Pod["status"]> {
  const startedAt = new Date().toISOString().replace(/\.\d+/, "");
  return {
    phase: "Running",
    podIP: `10.1.0.${number}`,
    podIPs: [{ ip: `10.1.0.${number}` }],
    containerStatuses: [
      {
        name: "pulumi",
        image: "i",
        imageID: "i",
        ready: true,
        restartCount: 0,
        state: { running: { startedAt } },
      },
    ],
  };
}

export const complete: NonNullable<Update["status"]> = {
  endTime: "2030-01-01T00:00:00Z",
  conditions: [
    {
      type: "Complete",
      status: "True",
      reason: "Complete",
      message: "it has ended",
      lastTransitionTime: "2030-01-01T00:00:00Z",
    },
  ],
};
