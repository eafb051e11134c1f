/**
 * A fake kubelet for the pods of the operator's Deployment: each is a real operator with the arguments and variables of its
 * container, the permissions of the chart, and as much CPU as its limit allows.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { builtin, isNotFound, keyOf, reflector, timestamp, type ApiObject, type Client, type Key } from "@pko/kube";
import { freePort, spawnChild, type ChildProcess } from "@pko/testkit";
import type { Container, Pod } from "kubernetes-types/core/v1";

interface OperatorKubeletOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly folder: string;
  /** The command that starts an operator, without its flags. */
  readonly command: readonly string[];
  /** For what is different outside of a pod. */
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Receives the ports at which the operators serve metrics, by pod. */
  readonly onTargets: (targets: ReadonlyMap<string, number>) => void;
}

const probeMs = 500;
const restartMs = 2000;

export class OperatorKubelet implements AsyncDisposable {
  readonly #options: OperatorKubeletOptions;
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;
  readonly #pods = new Map<Key, { readonly stop: AbortController; readonly ended: Promise<void> }>();
  readonly #targets = new Map<string, number>();

  constructor(options: OperatorKubeletOptions) {
    this.#options = options;
    const labelSelector = "app.kubernetes.io/name=pulumi-kubernetes-operator";
    const pods = reflector(options.client, builtin.pods, { namespaces: [options.namespace], labelSelector });
    pods.store.subscribe(({ key, after }) => this.#onPod(key, after));
    this.#watching = pods.run(this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#watching;
    for (const { stop } of this.#pods.values()) stop.abort();
    await Promise.all(Array.from(this.#pods.values(), ({ ended }) => ended));
  }

  logFile(pod: string): string {
    return join(this.#options.folder, `${pod}.log`);
  }

  #onPod(key: Key, pod: ApiObject<Pod> | undefined): void {
    const known = this.#pods.get(key);
    if (!pod || pod.metadata.deletionTimestamp) known?.stop.abort();
    else if (!known && pod.spec?.nodeName !== undefined) {
      const stop = new AbortController();
      const ended = this.#run(pod, stop.signal).finally(() => this.#pods.delete(keyOf(pod)));
      this.#pods.set(key, { stop, ended });
    }
  }

  /** Until the pod is deleted. An operator that ends is started again. */
  async #run(pod: ApiObject<Pod>, signal: AbortSignal): Promise<void> {
    const { namespace = "", name = "", uid = "" } = pod.metadata;
    for (let restarts = 0; !signal.aborted; restarts++) await this.#runOnce(pod, { restarts, signal });
    if (this.#stop.signal.aborted) return;
    await ignoringDeletion(
      this.#options.client.delete(builtin.pods, { namespace, name }, { uid, gracePeriodSeconds: 0 }),
    );
  }

  async #runOnce(
    pod: ApiObject<Pod>,
    { restarts, signal }: { readonly restarts: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { name = "" } = pod.metadata;
    const [metrics, probes] = [await freePort(), await freePort()];
    const operator = this.#start(pod, { metrics, probes });
    const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    const ended = Promise.race([operator.exited, stopped]);
    this.#setTarget(name, metrics);
    const limiting = limitCpu(operator, cpuShareOf(pod));
    while (operator.running && !signal.aborted) {
      await this.#report(pod, { restarts, isReady: await isReady(probes) });
      await Promise.race([ended, Bun.sleep(probeMs)]);
    }
    if (operator.running) await operator.stop();
    await limiting;
    this.#setTarget(name, undefined);
    if (signal.aborted) return;
    await this.#report(pod, { restarts, isReady: false, waiting: "CrashLoopBackOff" });
    await Promise.race([stopped, Bun.sleep(restartMs)]);
  }

  #start(
    pod: ApiObject<Pod>,
    { metrics, probes }: { readonly metrics: number; readonly probes: number },
  ): ChildProcess {
    const { command, flags, env, folder } = this.#options;
    const { name = "" } = pod.metadata;
    const [container] = pod.spec?.containers ?? [];
    const tmp = join(folder, `${name}.tmp`);
    mkdirSync(tmp, { recursive: true });
    const addresses = [`--metrics-address=127.0.0.1:${metrics}`, `--probe-address=127.0.0.1:${probes}`];
    return spawnChild({
      command: [...command, ...(container?.args ?? []), ...addresses, ...flags],
      env: { ...variablesOf(pod, container), ...env, TMPDIR: tmp },
      logFile: this.logFile(name),
    });
  }

  #setTarget(pod: string, port: number | undefined): void {
    if (port === undefined) this.#targets.delete(pod);
    else this.#targets.set(pod, port);
    this.#options.onTargets(this.#targets);
  }

  readonly #reported = new Map<string, string>();

  async #report({ metadata, spec }: ApiObject<Pod>, state: ContainerState): Promise<void> {
    const { namespace = "", name = "", uid = "" } = metadata;
    if (this.#reported.get(uid) === JSON.stringify(state)) return;
    const patch = { type: "merge", body: { metadata: { uid }, status: statusOf(spec?.containers[0], state) } } as const;
    await ignoringDeletion(
      this.#options.client.patch(builtin.pods, { namespace, name }, { patch, subresource: "status" }),
    );
    this.#reported.set(uid, JSON.stringify(state));
  }
}

interface ContainerState {
  readonly restarts: number;
  readonly isReady: boolean;
  readonly waiting?: string;
}

function statusOf(
  { name = "", image = "" }: Partial<Container> = {},
  state: ContainerState,
): NonNullable<Pod["status"]> {
  const now = timestamp(Date.now());
  const { restarts: restartCount, isReady: ready, waiting } = state;
  const condition = (type: string, isTrue: boolean) => ({
    type,
    status: isTrue ? "True" : "False",
    lastTransitionTime: now,
  });
  return {
    phase: "Running",
    podIP: "127.0.0.1",
    podIPs: [{ ip: "127.0.0.1" }],
    startTime: now,
    conditions: [
      ...["PodScheduled", "Initialized"].map((type) => condition(type, true)),
      ...["Ready", "ContainersReady"].map((type) => condition(type, ready)),
    ],
    containerStatuses: [
      {
        name,
        image,
        imageID: image,
        ready,
        restartCount,
        state: waiting === undefined ? { running: { startedAt: now } } : { waiting: { reason: waiting } },
      },
    ],
  };
}

/** As a kubelet resolves them. */
function variablesOf({ metadata }: ApiObject<Pod>, container?: Container): Record<string, string> {
  const fields: Readonly<Record<string, string | undefined>> = {
    "metadata.name": metadata.name,
    "metadata.namespace": metadata.namespace,
  };
  const entries = (container?.env ?? []).map(({ name, value, valueFrom }) => [
    name,
    value ?? fields[valueFrom?.fieldRef?.fieldPath ?? ""] ?? "",
  ]);
  return Object.fromEntries(entries) as Record<string, string>;
}

async function isReady(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(1000) })).ok;
  } catch {
    return false;
  }
}

async function ignoringDeletion(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** The part of a CPU that the container may use, from a limit in millicores; 1 without a limit. */
function cpuShareOf({ spec }: ApiObject<Pod>): number {
  const [, millicores] = /^(\d+)m$/.exec(spec?.containers[0]?.resources?.limits?.["cpu"] ?? "") ?? [];
  return Math.min(1, Number(millicores ?? 1000) / 1000);
}

const periodMs = 100;

/** Like the kernel: in each period, the process runs for its share. */
async function limitCpu(child: ChildProcess, share: number): Promise<void> {
  if (share === 1) return;
  while (child.running) {
    await Bun.sleep(periodMs * share);
    if (!child.running) break;
    process.kill(child.pid, "SIGSTOP");
    await Bun.sleep(periodMs * (1 - share));
    if (child.running) process.kill(child.pid, "SIGCONT");
  }
}
