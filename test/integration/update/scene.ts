/** A scene with an Update controller, and Workspaces whose pods are fake agents. */
import {
  labelsOfWorkspace,
  updateKind,
  workspaceKind,
  type Update,
  type UpdateRecord,
  type UpdateSpec,
  type Workspace,
  type WorkspaceSpec,
} from "@pko/api";
import {
  builtin,
  keyOf,
  resource,
  type ApiObject,
  type Client,
  type Key,
  type KubeObject,
  type Logger,
} from "@pko/kube";
import {
  operatorCa,
  runs,
  slots,
  updateController,
  updateRecords,
  workspaceIndex,
  type RunPreparations,
  type OperatorCa,
  type SlotLimits,
  type UpdateController,
} from "@pko/operator";
import { checkStatus, freePort, waitFor } from "@pko/testkit";
import type { Secret } from "kubernetes-types/core/v1";

import { policyInForce } from "../approvals/decide.ts";
import type { Operator, OperatorParts, Wiring } from "../harness/operator.ts";
import { controllerOf } from "../harness/pods.ts";
import { openPlace, Scene, type SceneParts } from "../harness/scene.ts";
import { FakeAgent } from "./fake-agent.ts";

export const updates = resource<Update>(updateKind);
export const workspaces = resource<Workspace>(workspaceKind);

interface WorkspaceOptions {
  /** Prepared, but without an address. */
  readonly idle?: boolean;
  readonly nodeName?: string;
}

interface UpdateOptions {
  /** The operator's client, for example through a proxy. */
  readonly client?: Client;
  /** Fills the stores. */
  readonly reading?: Client;
  readonly log?: Logger;
  readonly lostNodeAfterMs?: number;
  /** Of slots; none if absent. */
  readonly limits?: SlotLimits;
  /** Whether WorkspaceClasses apply. */
  readonly classes?: boolean;
  /** Nothing is known to be prepared unless given. */
  readonly preparations?: RunPreparations;
}

const nothingPrepared: RunPreparations = { preparationOf: () => undefined, renew: () => undefined };

type AgentRuns = ReturnType<typeof runs>;

export class UpdateScene extends Scene {
  readonly ca: OperatorCa;
  readonly agents = new Set<FakeAgent>();
  /** Of the operator that was started last. */
  runs: AgentRuns | undefined;

  private constructor(parts: SceneParts, ca: OperatorCa) {
    super(parts);
    this.ca = ca;
    this.defer(() => Promise.all([...this.agents].map((agent) => agent.close())));
  }

  static async open(): Promise<UpdateScene> {
    const parts = await openPlace();
    const ca = operatorCa({ client: parts.rights.client, namespace: parts.place.name });
    await ca.load();
    return new UpdateScene(parts, ca);
  }

  operator({ client, reading = this.rights.client, ...options }: UpdateOptions = {}): Operator {
    const wire = ({ stores, client: own, events, metrics }: OperatorParts): Wiring => {
      const { updates, workspaces, pods, stacks, approvals } = stores;
      const { limits } = options;
      const wake = (workspace: Key): void => {
        for (const update of updates.store.byIndex(workspaceIndex, workspace)) controller.enqueue(keyOf(update));
      };
      const connected = this.#connect((runId) => controller.wakeRun(runId), options.preparations);
      const controller: UpdateController = updateController({
        client: own,
        events,
        updates,
        workspaces,
        pods,
        stacks,
        approvals,
        approvalPolicy: policyInForce,
        workspaceClasses: options.classes ? stores.workspaceClasses : undefined,
        runs: connected,
        projects: { projectOf: () => ({ name: "shop", runtime: "yaml" }) },
        lostNodeAfterMs: options.lostNodeAfterMs ?? 300_000,
        metrics,
        ...(limits && { slots: slots({ limits, updates: updates.store, wake, metrics }) }),
        ...(options.log && { log: options.log }),
      });
      this.runs = connected;
      return { controllers: [controller], stop: () => connected.stop() };
    };
    return this.startOperator({ reading, ...(client && { client }) }, wire);
  }

  #connect(wake: (runId: string) => void, preparations: RunPreparations = nothingPrepared): AgentRuns {
    const backoff = { baseMs: 20, factor: 2, capMs: 500, jitter: 0 };
    const busyBackoff = { ...backoff, capMs: 200 };
    return runs({ ca: this.ca, wake, preparations, progressMs: 100, backoff, busyBackoff });
  }

  /** Prepared, with a pod; its status has an address unless it is idle. */
  async workspace(name: string, spec: WorkspaceSpec = {}, how: WorkspaceOptions = {}): Promise<FakeAgent> {
    const { namespace } = this;
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
    const { namespace } = this;
    const agent = await new FakeAgent({ namespace, name: workspace }, { port: await freePort() }).listen(this.ca);
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
  async until(name: string, expected: Readonly<Record<string, string>>, timeoutMs = 60_000): Promise<Update> {
    return await waitFor(
      async () => {
        const update = await this.find(name);
        const now = conditionsOf(update);
        const isReached = Object.entries(expected).every(([type, state]) => now[type] === state);
        return isReached ? update : undefined;
      },
      { timeoutMs, what: `${name}: ${JSON.stringify(expected)}` },
    );
  }

  async records(): Promise<UpdateRecord[]> {
    return (await this.client.list(updateRecords, { namespace: this.namespace })).items;
  }

  async secret(name: string): Promise<ApiObject<Secret> | undefined> {
    return await this.client.find(builtin.secrets, this.ref(name));
  }
}

export function conditionsOf(update: Update | undefined): Record<string, string> {
  const all = update?.status?.conditions ?? [];
  return Object.fromEntries(all.map(({ type, status, reason }) => [type, `${status}/${reason}`]));
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
