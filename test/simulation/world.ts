/** Everything of one seed: clusters that share a bucket, the operators in them, a Git server, and what is known about it all. */
import type { Stack } from "@pko/api";
import { builtin } from "@pko/kube";

import { seededRandom, type SeededRandom } from "../../packages/kube/testing/seeded-random.ts";
import type { GitRefs } from "../../packages/operator/src/sources/git-remote.ts";
import { servedKind } from "./api/kinds.ts";
import { Backend } from "./backend.ts";
import { Cluster } from "./cluster.ts";
import { namespace, stacks, type Place, type Weather } from "./place.ts";
import { Invariants } from "./invariants.ts";
import { OperatorProcess, operatorNamespace } from "./operator-process.ts";
import { settle, VirtualTime, type VirtualProcess } from "./virtual-time.ts";
import { admission } from "./admission.ts";

/** A write that takes longer may arrive after another replica has become the leader. */
const lateMs = 1000;

const fineWeather = (): Weather => ({
  requestFaults: { share: 0, kinds: ["serverError"] },
  watchLagMs: 0,
  lostEventShare: 0,
  writeDelayMs: 0,
  lostAgentResponseShare: 0,
  agentDelayMs: 0,
});

export class World {
  readonly seed: number;
  readonly time: VirtualTime;
  /** Of users and faults. */
  readonly clock: VirtualProcess;
  readonly backend: Backend;
  readonly invariants: Invariants;
  readonly places: readonly Place[];
  readonly story: string[] = [];
  readonly log: string[] = [];
  /** Independent of each other, so that what one draws does not change the others. */
  readonly users: SeededRandom;
  readonly faults: SeededRandom;
  readonly #network: SeededRandom;
  readonly #ids: SeededRandom;
  /** After which workspaces are scaled to zero. */
  readonly idleTimeoutMs: number;
  readonly #flags: readonly string[];
  /** The operator has no kernel timer if there is no libc. */
  readonly #hasAlarm: boolean;
  #head = "";
  isGitDown = false;
  /** Times in the future were recorded, or a store may lack something that only its next comparison finds. */
  mayCorrectLate = false;
  /** Nothing fails any more. */
  isCalm = false;
  /** All that were ever started. */
  readonly #operators: OperatorProcess[] = [];
  #isOver = false;

  constructor(seed: number) {
    this.seed = seed;
    const random = seededRandom(seed);
    const stream = (): SeededRandom => seededRandom(random.below(2 ** 31));
    [this.users, this.faults, this.#network, this.#ids] = [stream(), stream(), stream(), stream()];
    this.time = new VirtualTime(stream());
    this.clock = this.time.process("world");
    // Jitter without a parameter for it. The simulation has the process for itself.
    Math.random = stream().next;
    this.invariants = new Invariants(this);
    this.backend = new Backend({
      onViolation: (what) => this.invariants.violate(what),
      onWrite: (write) => this.invariants.onWrite(write),
    });
    this.push();
    const count = random.next() < 0.2 ? 2 : 1;
    const replicas = random.next() < 0.5 ? 2 : 1;
    this.idleTimeoutMs = random.pick([30_000, 30_000, 30_000, 60_000, 180_000]);
    this.#hasAlarm = random.next() < 0.5;
    // Most of the time, the default would only cost requests.
    this.#flags = random.next() < 0.8 ? ["--lease-duration=60s", "--renew-deadline=40s", "--retry-period=10s"] : [];
    this.places = ["east", "west"].slice(0, count).map((name) => this.#place(name));
    for (const place of this.places) {
      for (let replica = 0; replica < replicas; replica++) this.startReplica(place, replica);
    }
  }

  tell(text: string): void {
    this.story.push(`${(this.time.elapsed / 1000).toFixed(3).padStart(10)}  ${text}`);
  }

  readonly newUid = (): string => {
    const part = (): string =>
      Math.floor(this.#ids.next() * 2 ** 32)
        .toString(16)
        .padStart(8, "0");
    return `${part()}-${part()}`;
  };

  /** The commit of the branch that all Stacks follow. */
  get head(): string {
    return this.#head;
  }

  push(): void {
    this.#head = Array.from({ length: 5 }, () => this.newUid().slice(0, 8)).join("");
    this.tell(`user: pushes commit ${this.#head.slice(0, 8)}`);
  }

  startReplica(place: Place, replica: number): void {
    if (this.#isOver) return;
    const name = `operator-${this.#operators.length + 1}`;
    const { cluster, weather } = place;
    this.tell(`${cluster.name}: ${name} starts`);
    const random = seededRandom(this.#network.below(2 ** 31));
    const happens = (share: number): boolean => share > 0 && random.next() < share;
    const started: OperatorProcess = new OperatorProcess({
      name,
      cluster,
      time: this.time,
      random,
      newUid: this.newUid,
      hasAlarm: this.#hasAlarm,
      flags: [...this.#flags, `--idle-timeout-seconds=${this.idleTimeoutMs / 1000}`],
      listRefs: () => this.#listRefs(started),
      faultOf: () => (happens(weather.requestFaults.share) ? random.pick(weather.requestFaults.kinds) : undefined),
      losesEvent: () => happens(weather.lostEventShare),
      watchLagMs: () => weather.watchLagMs * random.next(),
      losesAgentResponse: () => happens(weather.lostAgentResponseShare),
      agentDelayMs: () => weather.agentDelayMs * random.next() ** 2,
      writeDelayMs: () => weather.writeDelayMs * random.next() ** 2,
      onRequest: (request, reply, delayMs) =>
        this.invariants.onRequest(place, { request, reply, sender: name, isLate: delayMs > lateMs }),
      onLog: (line) => this.#onLog(line),
      onExit: (reason) => this.#onExit(place, replica, `${name} ${reason}`),
    });
    this.#operators.push(started);
    place.replicas[replica] = started;
  }

  /** As a kubelet does it. */
  restartReplica(place: Place, replica: number): void {
    place.replicas[replica] = undefined;
    place.cluster.server.after(1000 + this.#network.next() * 10_000, () => this.startReplica(place, replica));
  }

  stack(place: Place, name: string): Stack | undefined {
    return place.cluster.storage.find({ kind: stacks, namespace, name }) as Stack | undefined;
  }

  stacks(place: Place): Stack[] {
    return place.cluster.storage.list(stacks) as unknown as Stack[];
  }

  /** As the message of a Stack recommends it, for locks whose holder is known to be dead. */
  removeStaleLocks(): void {
    for (const stack of this.backend.removeStaleLocks()) this.tell(`user: removes the stale lock of ${stack}`);
  }

  /** Nothing of this seed runs in the next one, or needs memory. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.clock.kill();
    for (const { cluster } of this.places) {
      for (const { agent } of cluster.runtimes) agent.destroy();
      cluster.server.kill();
    }
    for (const operator of this.#operators) {
      operator.crash();
      operator.dispose();
    }
    await settle();
  }

  #place(name: string): Place {
    const { time, backend, newUid } = this;
    const random = seededRandom(this.#network.below(2 ** 31));
    const cluster = new Cluster({
      name,
      time,
      random,
      newUid,
      backend,
      admission,
      mayFail: () => !this.isCalm,
      sourceProblem: () => (this.isGitDown ? "the Git server does not respond" : undefined),
      secretOutput: this.invariants.secrets.output,
      onStart: (started) => this.invariants.onStart(place, started),
      onLost: (runIds) => this.invariants.runsLost(runIds),
    });
    const place: Place = { cluster, weather: fineWeather(), replicas: [] };
    for (const each of [namespace, operatorNamespace]) {
      const kind = servedKind(builtin.namespaces);
      cluster.storage.create({ kind, namespace: "" }, { metadata: { name: each } }, { manager: "admin" });
    }
    cluster.storage.subscribe((change) => this.invariants.onChange(place, change));
    return place;
  }

  async #listRefs(operator: OperatorProcess): Promise<GitRefs> {
    await operator.process.pause(10 + this.#network.next() * 300);
    if (this.isGitDown) return { kind: "failed", problem: "unreachable", message: "the Git server does not respond" };
    return { kind: "listed", commits: new Map([["refs/heads/main", this.#head]]) };
  }

  #onLog(line: string): void {
    if (this.#isOver) return;
    this.log.push(line);
    this.invariants.onText("the operator's log", line);
  }

  #onExit(place: Place, replica: number, what: string): void {
    this.tell(`${place.cluster.name}: ${what}`);
    this.restartReplica(place, replica);
  }
}
