/** A scene with a Workspace controller, a simulated kubelet and simulated agents. */
import { pulumiContainer, statefulSetNameOf, type Update, type Workspace, type WorkspaceSpec } from "@pko/api";
import { type ApiObject, builtin, systemClock, type Clock, type Key } from "@pko/kube";
import {
  operatorCa,
  slots,
  updates,
  workspaceController,
  workspaces,
  type AgentPod,
  type Preparation,
  type Run,
  type Preparations,
  type SlotLimits,
  type WorkspaceSettings,
} from "@pko/operator";
import type { PrepareRequest, PrepareResult } from "@pko/rpc";
import { checkStatus, waitFor, type FaultProxy, type ProxiedRequest } from "@pko/testkit";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Container, Pod } from "kubernetes-types/core/v1";

import type { Operator, OperatorParts, Wiring } from "../harness/operator.ts";
import { controllerOf, running } from "../harness/pods.ts";
import { openPlace, Scene, type SceneParts } from "../harness/scene.ts";

export const testTimeoutMs = 180_000;

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

  preparationOf(): undefined {}

  hasResponded(): boolean {
    return this.requests.length > 0 && this.answer.state !== "unreachable";
  }

  forget(): void {
    this.forgotten++;
  }
}

interface WorkspaceOptions {
  /** Of the namespace. */
  readonly labels?: Record<string, string>;
  /** Of slots; none if absent. */
  readonly limits?: SlotLimits;
  /** Configures a proxy between the operator and the API server, before the operator starts. */
  readonly proxied?: (proxy: FaultProxy) => void;
  /** Whether WorkspaceClasses apply. */
  readonly classes?: boolean;
  readonly clock?: Clock;
}

export class WorkspaceScene extends Scene {
  agents = new SimulatedAgents();
  /** The state of the run in the pod, as the Update controller would report it. */
  runInPod: Run | undefined;
  #operator: Operator | undefined;
  #controller: ReturnType<typeof workspaceController> | undefined;
  #proxy: FaultProxy | undefined;
  #pods = 0;
  #limits: SlotLimits | undefined;
  #hasClasses = false;
  #clock: Clock = systemClock;

  private constructor(parts: SceneParts) {
    super(parts);
  }

  static async open(
    settings: Partial<WorkspaceSettings> = {},
    options: WorkspaceOptions = {},
  ): Promise<WorkspaceScene> {
    const scene = new WorkspaceScene(await openPlace(options));
    scene.#limits = options.limits;
    scene.#hasClasses = options.classes ?? false;
    scene.#clock = options.clock ?? systemClock;
    if (options.proxied) await scene.#startBehindProxy(settings, options.proxied);
    else scene.#start(settings, scene.rights.client);
    return scene;
  }

  async #startBehindProxy(settings: Partial<WorkspaceSettings>, configure: (proxy: FaultProxy) => void): Promise<void> {
    const { proxy, client } = await this.proxy();
    configure(proxy);
    this.#proxy = proxy;
    this.#start(settings, client);
  }

  #start(settings: Partial<WorkspaceSettings>, client = this.rights.client): void {
    this.#operator = this.startOperator(
      { client, clock: this.#clock },
      ({ stores, client: own, clock, events, metrics }: OperatorParts): Wiring => {
        const { workspaces, updates, statefulSets, pods, programs } = stores;
        const limits = this.#limits;
        const wake = (workspace: Key): void => this.#controller?.enqueue(workspace);
        this.#controller = workspaceController({
          ...(limits && { slots: slots({ limits, updates: updates.store, wake, metrics, clock }) }),
          client: own,
          events,
          metrics,
          reflectors: { workspaces, updates, statefulSets, pods, programs },
          workspaceClasses: this.#hasClasses ? stores.workspaceClasses : undefined,
          ca: operatorCa({ client: own, namespace: this.namespace }),
          preparations: this.agents,
          runs: { find: () => this.runInPod },
          settings: { agentImage: "agent:1", idleTimeoutMs: 0, ...settings },
        });
        return { controllers: [this.#controller] };
      },
    );
  }

  /** The operator that was started last. */
  get operator(): Operator {
    if (!this.#operator) throw new Error("no operator is running");
    return this.#operator;
  }

  /** Stops the operator, and starts another one with these settings, which knows nothing of the agents, as in an upgrade. */
  async upgrade(settings: Partial<WorkspaceSettings>): Promise<void> {
    await this.#operator?.stop();
    this.agents = new SimulatedAgents();
    this.runInPod = undefined;
    this.#start(settings);
  }

  reconcile(name: string): void {
    this.#controller?.enqueue(`${this.namespace}/${name}`);
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
      { timeoutMs: 45_000, what: `the reconcile of ${name} to end` },
    );
  }

  #figure(name: string): number {
    const exposed = this.#operator?.metrics.expose() ?? "";
    return Number(new RegExp(`^${name}\\{.*\\} (\\d+)$`, "m").exec(exposed)?.[1] ?? 0);
  }

  async create(name: string, spec: WorkspaceSpec): Promise<void> {
    const { apiVersion, kind } = workspaces;
    await this.client.create(workspaces, { apiVersion, kind, metadata: this.ref(name), spec });
  }

  async change(name: string, spec: object): Promise<void> {
    await this.client.patch(workspaces, this.ref(name), { patch: { type: "merge", body: { spec } } });
  }

  async workspace(name: string): Promise<Workspace> {
    const workspace = await this.client.get(workspaces, this.ref(name));
    checkStatus(workspace);
    return workspace;
  }

  async statefulSet(name: string): Promise<ApiObject<StatefulSet>> {
    return await this.client.get(builtin.statefulSets, this.ref(statefulSetNameOf(name)));
  }

  /** A container of the pod's template. */
  async container(name: string, container = pulumiContainer): Promise<Container | undefined> {
    const pod = (await this.statefulSet(name)).spec?.template.spec;
    return [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])].find((each) => each.name === container);
  }

  /** Waits until the condition Ready has this reason and its message contains this text. */
  async becomes(name: string, reason: string, text = ""): Promise<Workspace> {
    const is = ({ status, metadata }: Workspace): boolean => {
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      const isSeen = status?.observedGeneration === metadata.generation;
      return isSeen && ready?.reason === reason && ready.message.includes(text);
    };
    return await this.untilObject(workspaces, name, { what: `${reason} ${text}`, is, timeoutMs: 45_000 });
  }

  /** Creates a pod of the current template, like the StatefulSet's controller. */
  async simulatePod(name: string, status: Pod["status"] = running(++this.#pods)): Promise<ApiObject<Pod>> {
    const ref = this.ref(`${statefulSetNameOf(name)}-0`);
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

  /**
   * Observes the current template, like the StatefulSet's controller. Returns when the controller's store shows it: otherwise, a
   * pod of this revision would count as one of an old template, and be deleted while it starts.
   */
  async simulateRevision(name: string, updateRevision: string): Promise<void> {
    const { metadata } = await this.statefulSet(name);
    const status = { observedGeneration: metadata.generation, replicas: 1, updateRevision };
    await this.client.patch(builtin.statefulSets, this.ref(statefulSetNameOf(name)), {
      patch: { type: "merge", body: { status } },
      subresource: "status",
    });
    const store = this.#operator?.stores.statefulSets.store;
    const isKnown = (): boolean =>
      store?.get(`${this.namespace}/${statefulSetNameOf(name)}`)?.status?.updateRevision === updateRevision;
    if (store) await waitFor(isKnown, { what: `revision ${updateRevision} of ${name} in the store` });
  }

  /** Calls back with all StatefulSets of the namespace, now and whenever one changes. */
  onStatefulSets(listen: (sets: readonly ApiObject<StatefulSet>[]) => void): Disposable {
    const { store } = this.#operator?.stores.statefulSets ?? {};
    listen(store?.list() ?? []);
    const stop = store?.subscribe(() => listen(store.list()));
    return { [Symbol.dispose]: () => stop?.() };
  }

  async setPod(name: string, status: Pod["status"]): Promise<ApiObject<Pod>> {
    return await this.client.patch(builtin.pods, this.ref(`${statefulSetNameOf(name)}-0`), {
      patch: { type: "merge", body: { status } },
      subresource: "status",
    });
  }

  async removePod(name: string): Promise<void> {
    await this.client.delete(builtin.pods, this.ref(`${statefulSetNameOf(name)}-0`), { gracePeriodSeconds: 0 });
  }

  async createUpdate(name: string, workspaceName: string): Promise<void> {
    const { apiVersion, kind } = updates;
    const spec = { workspaceName, stackName: "dev", type: "up" };
    await this.client.create(updates, { apiVersion, kind, metadata: this.ref(name), spec });
  }

  /** Returns when the controller's store shows it. */
  async setUpdate(name: string, status: Update["status"]): Promise<void> {
    const { metadata } = await this.client.patch(updates, this.ref(name), {
      patch: { type: "merge", body: { status } },
      subresource: "status",
    });
    const known = (): Update | undefined => this.#operator?.stores.updates.store.get(`${this.namespace}/${name}`);
    await waitFor(() => known()?.metadata.resourceVersion === metadata.resourceVersion, {
      what: `${name} in the store`,
    });
  }

  /** Creates a workspace and makes it ready. */
  async ready(name: string, spec: WorkspaceSpec): Promise<Workspace> {
    await this.create(name, spec);
    await this.becomes(name, "WaitingForReplicas");
    await this.simulatePod(name);
    return await this.becomes(name, "Succeeded");
  }
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
