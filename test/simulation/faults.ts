/** What fails, when, and for how long. Every fault ends. */
import type { SeededRandom } from "../../packages/kube/testing/seeded-random.ts";
import type { RequestFault } from "./api/network.ts";
import type { Place } from "./place.ts";
import type { World } from "./world.ts";

/** Returns a description, and how to end it; undefined if it cannot happen now. */
type Fault = (world: World, place: Place, random: SeededRandom) => StartedFault | undefined;

interface StartedFault {
  readonly what: string;
  readonly lastsMs?: number;
  readonly end?: () => void;
}

const seconds = (random: SeededRandom, least: number, most: number): number =>
  (least + random.next() * (most - least)) * 1000;

/** Most often the one that wrote last, which is the leader. */
function replicaIn({ invariants }: World, { replicas }: Place, random: SeededRandom): number {
  const writer = replicas.findIndex((operator) => operator?.name === invariants.lastWriter);
  return writer < 0 || random.next() < 0.3 ? random.below(replicas.length) : writer;
}

const requestFaults: readonly [string, readonly [RequestFault, ...RequestFault[]]][] = [
  ["responds 429", ["tooManyRequests"]],
  ["responds 500 and 503", ["serverError", "unavailable"]],
  ["loses responses", ["lostResponse"]],
  ["loses requests and responses", ["lostRequest", "lostResponse"]],
];

const faults: Readonly<Record<string, Fault>> = {
  operatorCrash(world, place, random) {
    const replica = replicaIn(world, place, random);
    const operator = place.replicas[replica];
    if (!operator) return undefined;
    operator.crash();
    world.restartReplica(place, replica);
    return { what: `${operator.name} crashes` };
  },

  operatorFreeze(world, place, random) {
    const operator = place.replicas[replicaIn(world, place, random)];
    if (!operator || operator.process.isFrozen) return undefined;
    operator.freeze();
    return { what: `${operator.name} is frozen`, lastsMs: seconds(random, 1, 150), end: () => operator.resume() };
  },

  partition(world, place, random) {
    const operator = place.replicas[replicaIn(world, place, random)];
    if (!operator) return undefined;
    operator.cutOff = "everything";
    return {
      what: `${operator.name} loses its network`,
      lastsMs: seconds(random, 1, 120),
      end: () => (operator.cutOff = "nothing"),
    };
  },

  /** Another replica may lead, while this one can still start and cancel runs. */
  apiPartition(world, place, random) {
    const operator = place.replicas[replicaIn(world, place, random)];
    if (!operator) return undefined;
    operator.cutOff = "the API server";
    return {
      what: `${operator.name} reaches agents, but not the API server`,
      lastsMs: seconds(random, 5, 180),
      end: () => (operator.cutOff = "nothing"),
    };
  },

  clockStep(world, place, random) {
    const operator = place.replicas[random.below(place.replicas.length)];
    if (!operator) return undefined;
    const ms = Math.round((random.next() - 0.5) * 2 * random.pick([5_000, 600_000, 86_400_000]));
    operator.process.stepWallClock(ms);
    if (ms > 0) world.mayCorrectLate = true;
    return {
      what: `the clock of ${operator.name} is set by ${Math.round(ms / 1000)} s`,
      lastsMs: seconds(random, 30, 900),
      end: () => operator.process.setWallClock(),
    };
  },

  requests(_, { weather }, random) {
    const [what, kinds] = random.pick(requestFaults as [(typeof requestFaults)[number], ...typeof requestFaults]);
    const share = random.pick([0.05, 0.3, 0.8]);
    weather.requestFaults = { share, kinds };
    return {
      what: `the API server ${what} (${share * 100} %)`,
      lastsMs: seconds(random, 5, 120),
      end: () => (weather.requestFaults = { share: 0, kinds }),
    };
  },

  lateWrites(_, { weather }, random) {
    weather.writeDelayMs = seconds(random, 2, 40);
    return {
      what: `writes arrive at the API server up to ${Math.round(weather.writeDelayMs / 1000)} s late, also those that were aborted`,
      lastsMs: seconds(random, 10, 180),
      end: () => (weather.writeDelayMs = 0),
    };
  },

  staleCaches(_, { weather }, random) {
    weather.watchLagMs = seconds(random, 1, 60);
    return {
      what: `watches lag by up to ${Math.round(weather.watchLagMs / 1000)} s`,
      lastsMs: seconds(random, 30, 300),
      end: () => (weather.watchLagMs = 0),
    };
  },

  lostEvents(world, { weather }, random) {
    world.mayCorrectLate = true;
    weather.lostEventShare = random.pick([0.1, 0.5, 1]);
    return { what: "watches lose events", lastsMs: seconds(random, 5, 120), end: () => (weather.lostEventShare = 0) };
  },

  compaction(_, { cluster, replicas }) {
    cluster.storage.compact();
    for (const operator of replicas) operator?.breakConnections();
    return { what: "etcd is compacted and all watches break" };
  },

  apiServerDown(_, { cluster, replicas }, random) {
    cluster.isDown = true;
    for (const operator of replicas) operator?.breakConnections();
    return { what: "the API server is down", lastsMs: seconds(random, 2, 90), end: () => (cluster.isDown = false) };
  },

  restore(world, place, random) {
    const { time, invariants } = world;
    const { cluster, replicas } = place;
    const ageMs = seconds(random, 20, 120);
    if (time.elapsed - ageMs < 1000) return undefined;
    const snapshotAt = time.now - ageMs;
    world.mayCorrectLate = true;
    const breakConnections = (): void => replicas.forEach((operator) => operator?.breakConnections());
    cluster.isDown = true;
    breakConnections();
    return {
      what: `the API server is stopped, and etcd is restored to its state ${Math.round(ageMs / 1000)} s ago`,
      lastsMs: seconds(random, 3, 30),
      end: () => {
        cluster.storage.restore(snapshotAt);
        invariants.restored(place);
        breakConnections();
        cluster.isDown = false;
      },
    };
  },

  evictedPod(_, { cluster }, random) {
    const runtime = cluster.runtimes[random.below(cluster.runtimes.length)];
    if (!runtime) return undefined;
    const isForced = random.next() < 0.3;
    if (isForced) cluster.forceDelete(runtime);
    else cluster.evict(runtime);
    return { what: `pod ${runtime.name} is ${isForced ? "deleted by force" : "evicted"}` };
  },

  crashedContainer(_, { cluster }, random) {
    const runtime = cluster.runtimes[random.below(cluster.runtimes.length)];
    if (!runtime) return undefined;
    cluster.crashContainer(runtime);
    return { what: `the container of pod ${runtime.name} is killed` };
  },

  lostNode(_, { cluster }, random) {
    cluster.loseNode();
    return { what: "the node loses its network", lastsMs: seconds(random, 20, 900), end: () => cluster.returnNode() };
  },

  restartedNode(_, { cluster }) {
    const lost = cluster.restartNode();
    const losses = lost.length > 0 ? `; the files of runs ${lost.join(", ")} are lost` : "";
    return { what: `the node restarts, and its pods get other addresses${losses}` };
  },

  poweredOffNode(_, { cluster }) {
    cluster.powerCycleNode();
    return { what: "the node loses its power, and all its pods" };
  },

  nodeClockStep(world, { cluster }, random) {
    const ms = Math.round((random.next() - 0.5) * 2 * 600_000);
    cluster.stepNodeClock(ms);
    if (ms > 0) world.mayCorrectLate = true;
    return {
      what: `the clock of the node is set by ${Math.round(ms / 1000)} s`,
      lastsMs: seconds(random, 30, 900),
      end: () => cluster.stepNodeClock(-ms),
    };
  },

  fullDisk(_, { cluster }, random) {
    cluster.isDiskFull = true;
    return {
      what: "the disk of the node is full",
      lastsMs: seconds(random, 10, 300),
      end: () => (cluster.isDiskFull = false),
    };
  },

  gitDown(world, _, random) {
    world.isGitDown = true;
    return { what: "the Git server is down", lastsMs: seconds(random, 10, 300), end: () => (world.isGitDown = false) };
  },

  lostAgentResponses(_, { weather }, random) {
    weather.lostAgentResponseShare = random.pick([0.2, 0.9]);
    return {
      what: "responses of agents get lost",
      lastsMs: seconds(random, 5, 60),
      end: () => (weather.lostAgentResponseShare = 0),
    };
  },

  lateAgentRequests(_, { weather }, random) {
    weather.agentDelayMs = seconds(random, 2, 60);
    return {
      what: `requests to agents arrive up to ${Math.round(weather.agentDelayMs / 1000)} s late, also those that were aborted`,
      lastsMs: seconds(random, 10, 180),
      end: () => (weather.agentDelayMs = 0),
    };
  },
};

const names = Object.keys(faults) as [string, ...string[]];

export class Faults {
  readonly #world: World;
  readonly #active = new Set<() => void>();
  count = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** One that can happen now. */
  inject(): void {
    const { faults: random, places, clock } = this.#world;
    for (;;) {
      const place = random.pick(places as [Place, ...Place[]]);
      const started = faults[random.pick(names)]?.(this.#world, place, random);
      if (!started) continue;
      this.count++;
      const { what, lastsMs = 0, end } = started;
      const lasts = end ? ` for ${(lastsMs / 1000).toFixed(1)} s` : "";
      this.#world.tell(`fault: ${what}${lasts} (${place.cluster.name})`);
      if (end) this.#endLater(end, lastsMs, clock);
      return;
    }
  }

  #endLater(end: () => void, ms: number, clock: World["clock"]): void {
    const ending = (): void => {
      if (!this.#active.delete(ending)) return;
      end();
      this.#world.tell("fault: one ends");
    };
    this.#active.add(ending);
    clock.after(ms, ending);
  }

  endAll(): void {
    for (const end of this.#active) end();
  }
}
