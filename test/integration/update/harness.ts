/** A namespace with Workspaces whose pods are fake agents, and operators that can be stopped, crashed and started. */
import {
  labelsOfWorkspace,
  updateKind,
  workspaceKind,
  type Update,
  type UpdateSpec,
  type Workspace,
  type WorkspaceSpec,
} from "@pko/api";
import {
  builtin,
  reflector,
  resource,
  silentLogger,
  type Client,
  type EventNote,
  type EventRecorder,
  type ApiObject,
  type KubeObject,
  type Logger,
} from "@pko/kube";
import {
  approvalIndexers,
  approvals,
  operatorCa,
  runs,
  stacks,
  updateController,
  updateIndexers,
  type AgentPod,
  type OperatorCa,
  type UpdateController,
} from "@pko/operator";
import { checkStatus, testNamespace, waitFor, type TestNamespace } from "@pko/testkit";
import type { Secret } from "kubernetes-types/core/v1";

import { OperatorRights } from "../../rights/operator-rights.ts";
import { apiServerWithApi } from "../api/install.ts";
import { policyInForce } from "../approvals/decide.ts";
import { controllerOf } from "../workspace/harness.ts";
import { FakeAgent } from "./fake-agent.ts";

export const updates = resource<Update>(updateKind);
export const workspaces = resource<Workspace>(workspaceKind);

interface WorkspaceOptions {
  /** Prepared, but without an address. */
  readonly idle?: boolean;
  readonly nodeName?: string;
}

export class World implements AsyncDisposable {
  readonly namespace: TestNamespace;
  /** The rights of the operator. */
  readonly rights: OperatorRights;
  readonly ca: OperatorCa;
  readonly agents = new Set<FakeAgent>();
  /** For `runs`. */
  unprepared: (pod: AgentPod, runId: string) => void = () => undefined;
  /** For operators that are started after it is set. */
  lostNodeAfterMs = 300_000;
  readonly #operators = new Set<Operator>();

  private constructor(namespace: TestNamespace, rights: OperatorRights, ca: OperatorCa) {
    this.namespace = namespace;
    this.rights = rights;
    this.ca = ca;
  }

  static async create(): Promise<World> {
    await apiServerWithApi();
    const namespace = await testNamespace();
    const rights = await OperatorRights.in(namespace);
    const ca = operatorCa({ client: rights.client, namespace: namespace.name });
    await ca.load();
    return new World(namespace, rights, ca);
  }

  get client(): Client {
    return this.namespace.client;
  }

  /** Prepared, with a pod; its status has an address unless it is idle. */
  async workspace(name: string, spec: WorkspaceSpec = {}, how: WorkspaceOptions = {}): Promise<FakeAgent> {
    const namespace = this.namespace.name;
    const { apiVersion, kind } = workspaceKind;
    await this.client.create(workspaces, { apiVersion, kind, metadata: { name, namespace }, spec });
    const agent = await this.pod(name, how);
    await this.setReady(name, how.idle ? {} : { address: `127.0.0.1:${agent.port}` });
    return agent;
  }

  async setReady(name: string, { address }: { readonly address?: string }): Promise<void> {
    const lastTransitionTime = "2030-01-01T00:00:00Z";
    const ready = {
      type: "Ready",
      status: "True",
      reason: "Succeeded",
      message: "It is prepared.",
      lastTransitionTime,
    };
    const body = { status: { observedGeneration: 1, address: address ?? null, conditions: [ready] } };
    const patch = { type: "merge", body } as const;
    await this.client.patch(workspaces, this.ref(name), { patch, subresource: "status" });
  }

  /** A new pod of a workspace, with an agent that has no runs yet. With a node, only the kubelet can end it. */
  async pod(workspace: string, { nodeName }: { readonly nodeName?: string } = {}): Promise<FakeAgent> {
    const namespace = this.namespace.name;
    const agent = await new FakeAgent({ namespace, name: workspace }).listen(this.ca);
    this.agents.add(agent);
    const name = `${workspace}-workspace-0`;
    const ownerReferences = [controllerOf(builtin.statefulSets, await this.#statefulSet(workspace))];
    await this.client.create(builtin.pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace, labels: labelsOfWorkspace(workspace), ownerReferences },
      spec: { containers: [{ name: "pulumi", image: "pulumi" }], ...(nodeName !== undefined && { nodeName }) },
    });
    const body = { status: { phase: "Running", podIP: "127.0.0.1", podIPs: [{ ip: "127.0.0.1" }] } };
    await this.client.patch(builtin.pods, this.ref(name), { patch: { type: "merge", body }, subresource: "status" });
    return agent;
  }

  /** No controller acts on it here. */
  async #statefulSet(workspace: string): Promise<KubeObject> {
    const ref = this.ref(`${workspace}-workspace`);
    const found = await this.client.find(builtin.statefulSets, ref);
    if (found) return found;
    const owner = await this.client.get(workspaces, this.ref(workspace));
    const matchLabels = labelsOfWorkspace(workspace);
    const template = {
      metadata: { labels: matchLabels },
      spec: { containers: [{ name: "pulumi", image: "pulumi" }] },
    };
    return await this.client.create(builtin.statefulSets, {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { ...ref, ownerReferences: [controllerOf(workspaces, owner)] },
      spec: { serviceName: ref.name, selector: { matchLabels }, template },
    });
  }

  /** Gives the pod of a workspace to another controller. */
  async disownPod(workspace: string, controller: { readonly name: string; readonly uid: string }): Promise<void> {
    const ownerReferences = [controllerOf(builtin.statefulSets, { metadata: controller })];
    const patch = { type: "merge", body: { metadata: { ownerReferences } } } as const;
    await this.client.patch(builtin.pods, this.ref(`${workspace}-workspace-0`), { patch });
  }

  async deletePod(workspace: string): Promise<void> {
    await this.client.delete(builtin.pods, this.ref(`${workspace}-workspace-0`), { gracePeriodSeconds: 0 });
  }

  ref(name: string): { readonly name: string; readonly namespace: string } {
    return { name, namespace: this.namespace.name };
  }

  /** Returns its uid. */
  async update(name: string, spec: UpdateSpec = {}): Promise<string> {
    const { apiVersion, kind } = updateKind;
    const whole = { workspaceName: "web", stackName: "dev", type: "up", ...spec };
    const created = await this.client.create(updates, { apiVersion, kind, metadata: this.ref(name), spec: whole });
    return created.metadata.uid ?? "";
  }

  async find(name: string): Promise<Update | undefined> {
    const update = await this.client.find(updates, this.ref(name));
    if (update) checkStatus(update);
    return update;
  }

  /** Waits until the conditions are these: `Complete: "True/Updated"`. */
  async until(name: string, expected: Readonly<Record<string, string>>): Promise<Update> {
    return await waitFor(
      async () => {
        const update = await this.find(name);
        const now = conditionsOf(update);
        const isReached = Object.entries(expected).every(([type, state]) => now[type] === state);
        return isReached ? update : undefined;
      },
      { timeoutMs: 20_000, what: `${name}: ${JSON.stringify(expected)}` },
    );
  }

  async secret(name: string): Promise<ApiObject<Secret> | undefined> {
    return await this.client.find(builtin.secrets, this.ref(name));
  }

  /** `reading` fills its stores. */
  operator(
    client: Client = this.rights.client,
    log: Logger = silentLogger,
    reading: Client = this.rights.client,
  ): Operator {
    const operator = new Operator(this, { client, log, reading, lostNodeAfterMs: this.lostNodeAfterMs });
    this.#operators.add(operator);
    return operator;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#operators].map((operator) => operator.stop()));
    await Promise.all([...this.agents].map((agent) => agent.close()));
    await this.namespace.remove();
    await this.rights[Symbol.asyncDispose]();
  }
}

export function conditionsOf(update: Update | undefined): Record<string, string> {
  const all = update?.status?.conditions ?? [];
  return Object.fromEntries(all.map(({ type, status, reason }) => [type, `${status}/${reason}`]));
}

interface OperatorOptions {
  readonly client: Client;
  readonly log: Logger;
  readonly reading: Client;
  readonly lostNodeAfterMs: number;
}

class Operator {
  readonly events: EventNote[] = [];
  readonly controller: UpdateController;
  readonly runs: ReturnType<typeof runs>;
  readonly #stop = new AbortController();
  readonly #kill = new AbortController();
  readonly #ended: Promise<unknown>;

  constructor(world: World, { client, log, reading, lostNodeAfterMs }: OperatorOptions) {
    const scope = { namespaces: [world.namespace.name] };
    const stores = {
      updates: reflector(reading, updates, { ...scope, indexers: updateIndexers }),
      workspaces: reflector(reading, workspaces, scope),
      pods: reflector(reading, builtin.pods, scope),
      stacks: reflector(reading, stacks, scope),
      approvals: reflector(reading, approvals, { ...scope, indexers: approvalIndexers }),
    };
    this.runs = runs({
      ca: world.ca,
      wake: (runId) => this.controller.wakeRun(runId),
      unprepared: (pod, runId) => world.unprepared(pod, runId),
      progressMs: 100,
      backoff: { baseMs: 20, factor: 2, capMs: 500, jitter: 0 },
      busyBackoff: { baseMs: 20, factor: 2, capMs: 200, jitter: 0 },
    });
    const events: EventRecorder = {
      record: (_, note) => void this.events.push(note),
      flush: () => Promise.resolve(),
    };
    const projects = { projectOf: () => ({ name: "shop", runtime: "yaml" }) };
    this.controller = updateController({
      ...stores,
      client,
      runs: this.runs,
      events,
      projects,
      approvalPolicy: policyInForce,
      log,
      lostNodeAfterMs,
    });
    this.#ended = Promise.all([
      ...Object.values(stores).map((each) => each.run(this.#stop.signal)),
      this.controller.run({ stop: this.#stop.signal, kill: this.#kill.signal }),
    ]);
  }

  /** Like a process that ends: its streams are closed, its runs continue. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#kill.abort();
    await this.runs.stop();
    await this.#ended;
  }
}

/** A client that fails at its nth write: before it is sent, or after it has taken effect. */
export function crashingClient(
  client: Client,
  nth: number,
  when: "before" | "after",
): { client: Client; crashed: Promise<void> } {
  const crash = Promise.withResolvers<void>();
  let writes = 0;
  const counted = async <T>(write: () => Promise<T>): Promise<T> => {
    writes += 1;
    if (writes > nth || (writes === nth && when === "before")) {
      crash.resolve();
      throw new Error("the process has crashed");
    }
    const response = await write();
    if (writes < nth) return response;
    crash.resolve();
    throw new Error("the process has crashed");
  };
  return {
    crashed: crash.promise,
    client: {
      ...client,
      get: (resource, ref, options) => client.get(resource, ref, options),
      find: (resource, ref, options) => client.find(resource, ref, options),
      create: (resource, object, options) => counted(() => client.create(resource, object, options)),
      apply: (resource, body, options) => counted(() => client.apply(resource, body, options)),
      patch: (resource, ref, change) => counted(() => client.patch(resource, ref, change)),
      delete: (resource, ref, options) => counted(() => client.delete(resource, ref, options)),
    },
  };
}
