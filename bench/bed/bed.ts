/** The shared setup of all scenarios: a namespace, watches, the bare CLI for comparison, a process meter and the operator. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { UserError } from "@pko/cluster";
import { builtin, connect, isNotFound, kubeconfigCredentials, type Client, type ApiObject } from "@pko/kube";
import { kubectlFor, type Kubectl } from "@pko/testkit";
import type { Pod } from "kubernetes-types/core/v1";

import { programs, stacks, updates, type Stack } from "./kinds.ts";
import { Meter, meterName, type Process } from "./meter.ts";
import type { Operator } from "./operator.ts";
import { RequestCount } from "./requests.ts";
import {
  bedLabel,
  bedObjects,
  programObject,
  serviceAccount,
  shimConfigMap,
  shimFolder,
  shimScript,
  stackObject,
  type ProgramSettings,
  type StackSettings,
} from "./stack.ts";
import { inParallel, waitUntil } from "./wait.ts";
import { TimedOut, Watch } from "./watch.ts";
import { Yardstick, yardstickObject, yardstickPod } from "./yardstick.ts";

/** What the operator uses, summed over its pods. */
export interface Usage {
  readonly at: number;
  readonly residentMb: number;
  readonly anonymousMb: number;
  /** Since the start of its pods. */
  readonly cpuMs: number;
  /** Since the start of the API server. */
  readonly requests: number;
}

interface BedOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly signal: AbortSignal;
}

const stackTimeoutMs = 180_000;

export class Bed {
  readonly client: Client;
  readonly kubectl: Kubectl;
  readonly namespace: string;
  readonly signal: AbortSignal;
  readonly watch: Watch;
  readonly yardstick: Yardstick;
  readonly requests: RequestCount;
  readonly #meter: Meter;
  readonly #meteredNodes = new Set<string>();
  #image = "";
  #path = "";
  #names = 0;

  private constructor(client: Client, kubectl: Kubectl, { namespace, signal }: BedOptions) {
    this.client = client;
    this.kubectl = kubectl;
    this.namespace = namespace;
    this.signal = signal;
    this.watch = new Watch(client, namespace, signal);
    this.yardstick = new Yardstick(kubectl, namespace);
    this.requests = new RequestCount(client, kubectl);
    this.#meter = new Meter(kubectl, namespace);
  }

  static async open(options: BedOptions): Promise<Bed> {
    const client = connect(await kubeconfigCredentials(options.kubeconfig), { userAgent: "pulumi-bench" });
    const cacheFolder = mkdtempSync(join(tmpdir(), "pko-bench-"));
    return new Bed(client, kubectlFor({ kubeconfig: options.kubeconfig, cacheFolder }), options);
  }

  async apply(...objects: readonly object[]): Promise<void> {
    await this.kubectl(["apply", "-f", "-"], {
      input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }),
    });
  }

  /** Creates the namespace and deploys one Stack, which pulls the images and shows which image is used. */
  async setUp(operator: Operator): Promise<void> {
    await this.clear();
    await this.apply(...bedObjects(this.namespace));
    await this.watch.start();
    await this.requests.start(operator);
    await operator.scaleUp();
    await operator.pod(this.signal);
    await this.program({ name: "first", text: "first" });
    const stack = await this.create({ name: "first", source: { programRef: { name: "first" } } });
    await this.succeeded("first", { text: "first" });
    const pod = this.watch.podOf(this.watch.stack("first") ?? stack);
    this.#image = pod?.spec?.containers.find(({ name }) => name === "pulumi")?.image ?? "";
    await this.apply(yardstickObject(this.namespace, this.#image));
    await this.#podReady(yardstickPod);
    await this.yardstick.prepare();
    await this.#createShim();
    await this.remove("first");
  }

  /** A PATH with the shim, for Stacks whose CLI calls are recorded or held. */
  get shimPath(): string {
    return `${shimFolder}:${this.#path}`;
  }

  async #createShim(): Promise<void> {
    this.#path = (await this.yardstick.sh('echo "$PATH"')).trim();
    await this.apply({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: shimConfigMap, namespace: this.namespace },
      data: { pulumi: shimScript(this.#path) },
    });
  }

  async #podReady(name: string): Promise<void> {
    await this.kubectl(["wait", "--for=condition=Ready", `pod/${name}`, "-n", this.namespace, "--timeout=120s"]);
  }

  /** A name that no other Stack of this run has. */
  newName(kind: string): string {
    this.#names += 1;
    return `${kind}-${this.#names}`;
  }

  async program(settings: Omit<ProgramSettings, "namespace">): Promise<void> {
    await this.client.apply(programs, withName(programObject({ ...settings, namespace: this.namespace })), {
      fieldManager: "bench",
    });
  }

  async create(settings: Omit<StackSettings, "namespace">): Promise<Stack> {
    return await this.client.create(stacks, stackObject({ ...settings, namespace: this.namespace }));
  }

  async patch(name: string, body: object): Promise<void> {
    const patch = { type: "merge", body } as const;
    await this.client.patch(stacks, { namespace: this.namespace, name }, { patch });
  }

  async request(name: string, value: string): Promise<void> {
    await this.patch(name, { metadata: { annotations: { "pulumi.com/reconciliation-request": value } } });
  }

  /** When the Stack had succeeded with these outputs. */
  async succeeded(name: string, outputs: Readonly<Record<string, string>>): Promise<number> {
    try {
      const { at } = await this.watch.until(() => this.#isAt(name, outputs), {
        timeoutMs: stackTimeoutMs,
        what: `Stack ${name} to succeed`,
      });
      return at;
    } catch (error) {
      if (!(error instanceof TimedOut)) throw error;
      throw new TimedOut(`${error.message}; ${this.#describeConditions(name)}`, { cause: error });
    }
  }

  /** The conditions of a Stack, to explain why it did not succeed. */
  #describeConditions(name: string): string {
    const conditions = this.watch.stack(name)?.status?.conditions ?? [];
    const conditionTexts = conditions.map(({ type, status, message }) => `${type} ${status}: ${message ?? ""}`);
    return conditionTexts.length > 0 ? `its conditions are ${conditionTexts.join(", ")}` : "it has no conditions";
  }

  /** A Stack that is stalled is not given up: some operators set the condition while they wait for the Program. */
  #isAt(name: string, outputs: Readonly<Record<string, string>>): boolean {
    const stack = this.watch.stack(name);
    if (!stack) return false;
    return isSucceeded(stack) && Object.entries(outputs).every(([key, text]) => stack.status?.outputs?.[key] === text);
  }

  /** When the update for this request had succeeded. */
  async requestSucceeded(name: string, request: string): Promise<number> {
    const { at } = await this.watch.until(
      () => {
        const stack = this.watch.stack(name);
        return stack && isSucceeded(stack) && stack.status?.lastUpdate?.reconcileRequest === request;
      },
      { timeoutMs: stackTimeoutMs, what: `the requested update of Stack ${name} to succeed` },
    );
    return at;
  }

  /** When the Stack was deleted. */
  async deleted(name: string): Promise<number> {
    const { at } = await this.watch.until(() => this.watch.stack(name) === undefined, {
      timeoutMs: stackTimeoutMs,
      what: `Stack ${name} to be deleted`,
    });
    return at;
  }

  /** Also waits for its pod to end, so that it does not affect the next measurement. */
  async remove(...names: readonly string[]): Promise<void> {
    await inParallel(names, 8, async (name) => {
      await this.client.delete(stacks, { namespace: this.namespace, name }).catch(ignoreMissing);
    });
    const isDeleted = (name: string): boolean => {
      const hasPod = this.watch.pods().some(({ metadata }) => metadata.name?.startsWith(`${name}-`));
      return this.watch.stack(name) === undefined && !hasPod;
    };
    await this.watch.until(() => names.every(isDeleted), {
      timeoutMs: stackTimeoutMs,
      what: `${names.length === 1 ? `Stack ${names[0]}` : `${names.length} Stacks`} and the pods to be deleted`,
    });
  }

  /** The processes of these pods, as seen on their nodes. */
  async podProcesses(pods: readonly ApiObject<Pod>[]): Promise<Process[]> {
    const nodes = new Set(pods.flatMap(({ spec }) => spec?.nodeName ?? []));
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    const found: Process[] = [];
    for (const node of nodes) {
      if (!this.#meteredNodes.has(node)) await this.#placeMeter(node);
      found.push(...(await this.#meter.processes(node)).filter(({ podUid }) => uids.has(podUid)));
    }
    return found;
  }

  async usage(operator: Operator): Promise<Usage> {
    const at = performance.now();
    const processes = await this.podProcesses(await operator.pods());
    const sum = (field: "residentMb" | "anonymousMb" | "cpuMs"): number =>
      processes.reduce((total, each) => total + each[field], 0);
    return {
      at,
      residentMb: sum("residentMb"),
      anonymousMb: sum("anonymousMb"),
      cpuMs: sum("cpuMs"),
      requests: await this.requests.total(),
    };
  }

  async #placeMeter(node: string): Promise<void> {
    await this.apply(Meter.object(this.namespace, node, this.#image));
    await this.#podReady(meterName(node));
    this.#meteredNodes.add(node);
  }

  /** Deletes everything of this run or of an interrupted one. Removes finalizers, because no operator may be running. */
  async clear(): Promise<void> {
    const { client, namespace } = this;
    const present = await client.find(builtin.namespaces, { name: namespace });
    if (present && present.metadata.labels?.[bedLabel] === undefined) {
      throw new UserError([
        `the namespace ${namespace} was not created by the benchmark: choose another one with BENCH_NAMESPACE`,
      ]);
    }
    const left = await client.list(stacks, { namespace }).catch(() => ({ items: [] }));
    await inParallel(left.items, 8, async ({ metadata }) => {
      await this.patch(metadata.name ?? "", { metadata: { finalizers: null } }).catch(ignoreMissing);
      await client.delete(stacks, { namespace, name: metadata.name ?? "" }).catch(ignoreMissing);
    });
    const runs = await client.list(updates, { namespace }).catch(() => ({ items: [] }));
    await inParallel(runs.items, 8, async ({ metadata }) => {
      const patch = { type: "merge", body: { metadata: { finalizers: null } } } as const;
      await client.patch(updates, { namespace, name: metadata.name ?? "" }, { patch }).catch(ignoreMissing);
    });
    await client.delete(builtin.namespaces, { name: namespace }).catch(ignoreMissing);
    const binding = `${namespace}:${serviceAccount}:system:auth-delegator`;
    await this.kubectl(["delete", "clusterrolebinding", binding, "--ignore-not-found"]);
    await this.requests.stop();
    const isNamespaceDeleted = async (): Promise<boolean> =>
      (await client.find(builtin.namespaces, { name: namespace })) === undefined;
    // Not aborted when the benchmark is interrupted: nothing of it must be left.
    const { signal } = new AbortController();
    await waitUntil(isNamespaceDeleted, { what: `namespace ${namespace} to be deleted`, timeoutMs: 180_000, signal });
  }
}

export function isSucceeded({ metadata, status }: Stack): boolean {
  const { state, generation } = status?.lastUpdate ?? {};
  return state === "succeeded" && (generation === undefined || generation === metadata.generation);
}

function ignoreMissing(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

const withName = <T extends { readonly metadata: { name?: string } }>(object: T) => ({
  ...object,
  metadata: { ...object.metadata, name: object.metadata.name ?? "" },
});
