/** A cluster around a simulated API server: the StatefulSet controller, the garbage collector, and nodes with kubelets. */
import { bootstrapContainer, pulumiContainer, updateKind } from "@pko/api";
import { builtin, isObject } from "@pko/kube";

import type { SeededRandom } from "../../packages/kube/testing/seeded-random.ts";
import type { ReachableAgent } from "./agent-connection.ts";
import { digest, SimulatedAgent, type AgentOptions } from "./agent.ts";
import type { JsonMap } from "./api/fields.ts";
import { servedKind } from "./api/kinds.ts";
import { ApiFrontend, type Admission } from "./api/server.ts";
import { refOf, StatusError, Storage, type Change, type ServedKind, type Stored } from "./api/storage.ts";
import type { VirtualProcess, VirtualTime } from "./virtual-time.ts";

const statefulSets = servedKind(builtin.statefulSets);
const pods = servedKind(builtin.pods);
const secrets = servedKind(builtin.secrets);
const updates = servedKind(updateKind);

interface Ref {
  readonly namespace: string;
  readonly name: string;
}

interface PodRuntime {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Empty until its sandbox has been created again. */
  ip: string;
  readonly agent: SimulatedAgent;
  certificate: ReachableAgent["certificate"];
  restarts: number;
}

export interface ClusterOptions extends Pick<
  AgentOptions,
  "backend" | "mayFail" | "sourceProblem" | "onStart" | "onLost" | "secretOutput"
> {
  readonly name: string;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly newUid: () => string;
  readonly admission: Admission;
}

const maxPodIps = 6;

/** The kinds that have a controller here. The garbage collector is only about objects with an owner, and deleted ones. */
const controlled = new Set(["StatefulSet", "Pod", "Secret"]);

export class Cluster {
  readonly name: string;
  readonly storage: Storage;
  readonly frontend: ApiFrontend;
  /** The API server and the control plane. */
  readonly server: VirtualProcess;
  readonly #options: ClusterOptions;
  readonly #running = new Map<string, PodRuntime>();
  readonly #starting = new Set<string>();
  readonly #queued = new Set<string>();
  #isDown = false;
  #isNodeDown = false;
  #isDiskFull = false;
  #nextIp = 1;
  /** How wrong the clock of the node is. */
  #nodeClockOffset = 0;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.name = options.name;
    const { time, newUid } = options;
    this.server = time.process(`api server of ${options.name}`);
    this.storage = new Storage({ now: () => time.now, newUid, otherWritesPerSecond: 5 });
    this.frontend = new ApiFrontend(this.storage, options.admission);
    this.storage.subscribe((change) => this.#onChange(change));
  }

  get isDown(): boolean {
    return this.#isDown;
  }

  set isDown(value: boolean) {
    this.#isDown = value;
    if (!value) this.resync();
  }

  get isDiskFull(): boolean {
    return this.#isDiskFull;
  }

  set isDiskFull(value: boolean) {
    this.#isDiskFull = value;
  }

  /** As the control plane writes, without a network. */
  write(kind: ServedKind, { namespace, name }: Ref, patch: JsonMap): void {
    this.#ignoringRaces(() => this.storage.mergePatch({ kind, namespace, name }, patch, { manager: "control-plane" }));
  }

  writeStatus(kind: ServedKind, { namespace, name }: Ref, status: JsonMap): void {
    const options = { manager: "control-plane", subresource: "status" };
    this.#ignoringRaces(() => this.storage.mergePatch({ kind, namespace, name }, { status }, options));
  }

  /** Whatever exists is reconciled again, as after a restart of the control plane. */
  resync(): void {
    for (const object of this.storage.list()) this.#enqueue(object);
    for (const [key, runtime] of this.#running) {
      const pod = this.storage.find({ kind: pods, namespace: runtime.namespace, name: runtime.name });
      if (pod?.metadata.uid === runtime.uid) continue;
      runtime.agent.destroy();
      this.#running.delete(key);
    }
  }

  agentAt(ip: string): ReachableAgent | "silent" | undefined {
    if (this.#isNodeDown) return "silent";
    for (const [, runtime] of this.#running) if (runtime.ip === ip) return runtime;
    return undefined;
  }

  get runtimes(): readonly PodRuntime[] {
    return [...this.#running.values()];
  }

  /** The network of the node fails: its pods continue, but nobody knows. */
  loseNode(): void {
    this.#isNodeDown = true;
    this.server.after(40_000, () => this.#isNodeDown && this.#setReady("False"));
  }

  returnNode(): void {
    this.#isNodeDown = false;
    this.#setReady("True");
    this.resync();
  }

  /** The power of the node fails, and it comes back with an empty disk. */
  powerCycleNode(): void {
    for (const [key, runtime] of this.#running) {
      runtime.agent.destroy();
      this.#running.delete(key);
      const pod = this.storage.find({ kind: pods, namespace: runtime.namespace, name: runtime.name });
      if (pod?.metadata.uid === runtime.uid) this.#deletePod(pod, 0);
    }
  }

  /**
   * Its pods keep their UID and their folders; their sandboxes are created again, with other addresses. Returns the runs whose files are
   * lost.
   */
  restartNode(): string[] {
    const { random } = this.#options;
    const lost: string[] = [];
    for (const runtime of this.#running.values()) {
      const losesFiles = this.#losesFiles(runtime);
      if (losesFiles) lost.push(runtime.agent.activeRun ?? "");
      runtime.restarts++;
      runtime.ip = "";
      runtime.agent.crash(this.#agentProcess(runtime.name), { losesFiles });
      this.server.after(3000 + random.next() * 30_000, () => {
        if (this.#running.get(runtime.uid) !== runtime || runtime.ip !== "") return;
        runtime.ip = this.#takeIp();
        const pod = this.storage.find({ kind: pods, namespace: runtime.namespace, name: runtime.name });
        if (pod) this.#enqueue(pod);
      });
    }
    return lost;
  }

  /**
   * Half of the pods have their folder in memory, or on a disk that loses what was flushed. An agent flushes the record of a run before its
   * command starts, so such a loss is harmless only if the operator has seen the run: one that it has not seen may start again.
   */
  #losesFiles({ uid, agent }: PodRuntime): boolean {
    const update = this.storage.list(updates).find(({ metadata }) => metadata.uid === agent.activeRun);
    const status = update?.["status"] as { readonly process?: object } | undefined;
    return status?.process !== undefined && parseInt(uid.slice(-1), 16) % 2 === 0;
  }

  /** The container of the agent is killed, for example because it needs too much memory. */
  crashContainer(runtime: PodRuntime): void {
    runtime.restarts++;
    runtime.agent.crash(this.#agentProcess(runtime.name));
    const pod = this.storage.find({ kind: pods, namespace: runtime.namespace, name: runtime.name });
    if (pod?.metadata.uid === runtime.uid) this.writeStatus(pods, runtime, this.#runningStatus(pod, runtime));
  }

  evict(runtime: PodRuntime): void {
    const pod = this.storage.find({ kind: pods, namespace: runtime.namespace, name: runtime.name });
    if (pod?.metadata.uid === runtime.uid) this.#deletePod(pod);
  }

  /** Agents and the CLI use it. */
  stepNodeClock(ms: number): void {
    this.#nodeClockOffset += ms;
    for (const { agent } of this.#running.values()) agent.stepClock(ms);
  }

  #agentProcess(name: string): VirtualProcess {
    const process = this.#options.time.process(`agent ${name}`);
    process.stepWallClock(this.#nodeClockOffset);
    return process;
  }

  /** A user deletes it by force: the API server forgets it at once, the kubelet a moment later. */
  forceDelete(runtime: PodRuntime): void {
    const pod = this.storage.find({ kind: pods, namespace: runtime.namespace, name: runtime.name });
    if (pod?.metadata.uid === runtime.uid) this.#deletePod(pod, 0);
  }

  #onChange({ kind, before, after, last }: Change): void {
    const object = after ?? last ?? before;
    if (object) this.#enqueue(object);
    if (!after && before) this.#collectDependents(before);
    if (kind === pods && !after && before) this.#podDeleted(before);
  }

  /** Each object once, after a moment, if there is a controller for it. */
  #enqueue(object: Stored): void {
    const { deletionTimestamp, ownerReferences } = object.metadata;
    if (deletionTimestamp === undefined && !ownerReferences && !controlled.has(object.kind)) return;
    const key = `${object.kind} ${object.metadata.namespace}/${object.metadata.name}`;
    if (this.#queued.has(key)) return;
    this.#queued.add(key);
    this.server.after(1 + this.#options.random.next() * 50, () => {
      this.#queued.delete(key);
      if (this.#isDown) return;
      const kind = servedKind({ apiVersion: object.apiVersion, plural: pluralOf(object) });
      const current = this.storage.find({ kind, ...refOf(object) });
      if (!current) return;
      this.#collectOrphan(kind, current);
      if (kind === statefulSets) this.#reconcileStatefulSet(current);
      if (kind === pods) this.#reconcilePod(current);
      if (kind === secrets) this.#remountSecret(current);
    });
  }

  // Garbage collection.

  #collectDependents({ metadata }: Stored): void {
    for (const object of this.storage.objects()) {
      if (object.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid)) this.#enqueue(object);
    }
  }

  #collectOrphan(kind: ServedKind, object: Stored): void {
    const { ownerReferences = [], deletionTimestamp, finalizers = [], uid } = object.metadata;
    const isKept = (owner: string): boolean =>
      this.storage
        .objects()
        .some(({ metadata }) => metadata.uid === owner && !metadata.finalizers?.includes("foregroundDeletion"));
    const kept = ownerReferences.filter((owner) => isKept(owner.uid));
    const isDangling = kept.length < ownerReferences.length && deletionTimestamp === undefined;
    if (isDangling && kept.length > 0) this.write(kind, refOf(object), { metadata: { ownerReferences: kept } });
    if (isDangling && kept.length === 0) {
      this.#ignoringRaces(() =>
        this.storage.delete({ kind, ...refOf(object) }, { uid, propagationPolicy: "Background" }),
      );
    }
    if (deletionTimestamp === undefined || !finalizers.includes("foregroundDeletion")) return;
    const dependents = [...this.storage.objects()].filter(({ metadata }) =>
      metadata.ownerReferences?.some((owner) => owner.uid === uid),
    );
    for (const each of dependents) this.#enqueue(each);
    if (dependents.length > 0) return void this.server.after(500, () => this.#enqueue(object));
    this.write(kind, refOf(object), {
      metadata: { finalizers: finalizers.filter((each) => each !== "foregroundDeletion") },
    });
  }

  // The StatefulSet controller.

  #reconcileStatefulSet(set: Stored): void {
    const { metadata } = set;
    const spec = set["spec"] as { replicas?: number; template: JsonMap };
    const { namespace = "", name = "", uid = "", generation } = metadata;
    const revision = `${name}-${digest(spec.template).slice(0, 8)}`;
    const { replicas = 1 } = spec;
    const pod = this.storage.find({ kind: pods, namespace, name: `${name}-0` });
    const isOurs = pod?.metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false;
    const status = {
      observedGeneration: generation,
      replicas: isOurs ? 1 : 0,
      updateRevision: revision,
      currentRevision: revision,
    };
    this.writeStatus(statefulSets, { namespace, name }, status);
    if (metadata.deletionTimestamp !== undefined) return;
    if (!pod && replicas > 0) this.#createPod(set, revision);
    if (pod && isOurs && (replicas === 0 || isReplaced(pod, revision))) this.#deletePod(pod);
  }

  #createPod(set: Stored, revision: string): void {
    const { namespace = "", name = "", uid = "" } = set.metadata;
    const template = (set["spec"] as { template: { metadata?: JsonMap; spec: JsonMap } }).template;
    const owner = { apiVersion: set.apiVersion, kind: set.kind, name, uid, controller: true, blockOwnerDeletion: true };
    const labels = { ...(template.metadata?.["labels"] as object), "controller-revision-hash": revision };
    const pod = {
      metadata: { ...template.metadata, name: `${name}-0`, labels, ownerReferences: [owner] },
      spec: template.spec,
    };
    this.#ignoringRaces(() => this.storage.create({ kind: pods, namespace }, pod, { manager: "control-plane" }));
  }

  #deletePod(pod: Stored, gracePeriodSeconds?: number): void {
    const { uid } = pod.metadata;
    this.#ignoringRaces(() => this.storage.delete({ kind: pods, ...refOf(pod) }, { uid, gracePeriodSeconds }));
  }

  // The scheduler and the kubelet.

  #reconcilePod(pod: Stored): void {
    const { uid = "", deletionTimestamp } = pod.metadata;
    const spec = pod["spec"] as { nodeName?: string };
    this.#enqueueOwners(pod);
    if (this.#isNodeDown) return;
    if (spec.nodeName === undefined) return this.write(pods, refOf(pod), { spec: { nodeName: "node-1" } });
    const runtime = this.#running.get(uid);
    if (deletionTimestamp !== undefined) return this.#terminate(pod, runtime);
    if (!runtime && !this.#starting.has(uid)) this.#startPod(pod);
    // A restored API server does not know what the kubelet has reported since.
    if (runtime && !isReported(pod, runtime)) this.writeStatus(pods, runtime, this.#runningStatus(pod, runtime));
  }

  #enqueueOwners(pod: Stored): void {
    for (const { name } of pod.metadata.ownerReferences ?? []) {
      const set = this.storage.find({ kind: statefulSets, namespace: refOf(pod).namespace, name });
      if (set) this.#enqueue(set);
    }
  }

  #startPod(pod: Stored): void {
    const { uid = "", namespace = "", name = "" } = pod.metadata;
    const { random } = this.#options;
    this.#starting.add(uid);
    this.server.after(100 + random.next() * 3000, () => {
      this.#starting.delete(uid);
      const current = this.storage.find({ kind: pods, namespace, name });
      if (current?.metadata.uid !== uid || this.#isNodeDown || current.metadata.deletionTimestamp !== undefined) {
        return current && this.#enqueue(current);
      }
      const secret = this.storage.find({ kind: secrets, namespace, name: `${name.replace(/-0$/, "")}-tls` });
      // Like a kubelet, it waits for the Secret of the volume.
      if (!secret) return void this.server.after(2000, () => this.#enqueue(current));
      const process = this.#agentProcess(name);
      const agent = new SimulatedAgent({
        ...this.#options,
        process,
        hostname: name,
        where: `${this.name} ${namespace}/${name}`,
        isDiskFull: () => this.#isDiskFull,
      });
      const runtime = {
        uid,
        namespace,
        name,
        ip: this.#takeIp(),
        agent,
        certificate: certificateIn(secret),
        restarts: 0,
      };
      this.#running.set(uid, runtime);
      this.writeStatus(pods, runtime, this.#runningStatus(current, runtime));
    });
  }

  /** Few, so that addresses are used again soon. */
  #takeIp(): string {
    for (;;) {
      const ip = `10.0.0.${1 + (this.#nextIp++ % maxPodIps)}`;
      if (![...this.#running.values()].some((runtime) => runtime.ip === ip)) return ip;
    }
  }

  #terminate(pod: Stored, runtime: PodRuntime | undefined): void {
    if (!runtime) return this.#deletePod(pod, 0);
    runtime.agent.stop();
    const grace = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
    const wait = runtime.agent.isIdle ? Math.min(grace, 300) : Math.min(grace, 2500);
    this.server.after(wait, () => {
      if (this.#isNodeDown) return;
      this.#stopRuntime(runtime);
      const current = this.storage.find({ kind: pods, ...refOf(pod) });
      if (current?.metadata.uid === runtime.uid) this.#deletePod(current, 0);
    });
  }

  /** The kubelet ends the containers of a pod that the API server no longer has. */
  #podDeleted(pod: Stored): void {
    this.#enqueueOwners(pod);
    const runtime = this.#running.get(pod.metadata.uid ?? "");
    if (!runtime) return;
    runtime.agent.abandon();
    const end = (): void => {
      if (this.#isNodeDown) return void this.server.after(1000, end);
      // A restored API server has the pod again, so a kubelet that was not reachable meanwhile never knew.
      const current = this.storage.find({ kind: pods, ...refOf(pod) });
      if (current?.metadata.uid !== runtime.uid) this.#stopRuntime(runtime);
    };
    this.server.after(50, end);
  }

  #stopRuntime(runtime: PodRuntime): void {
    runtime.agent.destroy();
    this.#running.delete(runtime.uid);
  }

  #remountSecret(secret: Stored): void {
    const { namespace, name = "" } = secret.metadata;
    if (!name.endsWith("-tls")) return;
    this.server.after(this.#options.random.next() * 60_000, () => {
      const current = this.storage.find({ kind: secrets, ...refOf(secret) });
      for (const runtime of this.#running.values()) {
        const isMounted = runtime.namespace === namespace && `${runtime.name.replace(/-0$/, "")}-tls` === name;
        if (current && isMounted) runtime.certificate = certificateIn(current);
      }
    });
  }

  #setReady(status: "True" | "False"): void {
    for (const runtime of this.#running.values()) {
      const pod = this.storage.find({ kind: pods, namespace: runtime.namespace, name: runtime.name });
      if (pod?.metadata.uid !== runtime.uid) continue;
      const { conditions = [] } = (pod["status"] as { conditions?: { type: string }[] } | undefined) ?? {};
      const changed = conditions.map((each) => (each.type === "Ready" ? this.#condition("Ready", status) : each));
      this.writeStatus(pods, runtime, { conditions: changed });
    }
  }

  #condition(type: string, status = "True") {
    return { type, status, lastTransitionTime: new Date(this.#options.time.now).toISOString().replace(/\.\d+/, "") };
  }

  #runningStatus(pod: Stored, { ip, restarts }: PodRuntime): JsonMap {
    const startedAt = new Date(this.#options.time.now).toISOString().replace(/\.\d+/, "");
    const containers = (pod["spec"] as { containers: { name: string; image?: string }[] }).containers;
    const used = containers.filter(({ name }) => name === pulumiContainer || name === bootstrapContainer);
    return {
      phase: "Running",
      podIP: ip,
      podIPs: [{ ip }],
      conditions: ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map((type) => this.#condition(type)),
      containerStatuses: used.map(({ name, image = "" }) => ({
        name,
        image,
        imageID: image,
        ready: true,
        started: true,
        restartCount: restarts,
        state: { running: { startedAt } },
      })),
    };
  }

  /** Another writer was faster: the next change leads here again. */
  #ignoringRaces(write: () => unknown): void {
    try {
      write();
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
    }
  }
}

/** Whether its status is what the kubelet reports: its address, and that it is ready. */
function isReported(pod: Stored, { ip }: PodRuntime): boolean {
  const { podIP, conditions = [] } = (pod["status"] ?? {}) as {
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
  return podIP === ip && conditions.some(({ type, status }) => type === "Ready" && status === "True");
}

/** Whether the StatefulSet controller deletes it, to create another one. */
function isReplaced(pod: Stored, revision: string): boolean {
  const { phase = "" } = (pod["status"] as { phase?: string } | undefined) ?? {};
  const isOutdated = pod.metadata.labels?.["controller-revision-hash"] !== revision;
  return isOutdated || phase === "Failed" || phase === "Succeeded";
}

function certificateIn(secret: Stored): ReachableAgent["certificate"] {
  const data = isObject(secret["data"]) ? secret["data"] : {};
  const textOf = (key: string): string => Buffer.from((data[key] as string | undefined) ?? "", "base64").toString();
  return { ca: textOf("ca.crt"), cert: textOf("tls.crt") };
}

const irregular: Readonly<Record<string, string>> = { WorkspaceClass: "workspaceclasses", Lease: "leases" };
const pluralOf = ({ kind }: Stored): string => irregular[kind] ?? `${kind.toLowerCase()}s`;
