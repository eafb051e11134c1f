import { afterAll, expect, test } from "bun:test";
import { builtin, type Client } from "@pko/kube";
import { testNamespace, waitFor, type TestNamespace } from "@pko/testkit";
import { leaseName, writeLabel } from "./leader-replica.ts";

/** A write as etcd ordered it among all others: the one clock that every replica shares. */
interface Write {
  readonly revision: number;
  readonly epoch: number;
  readonly replica: string;
}

/** The moment a replica took the lease, in the same order. */
interface Taking {
  readonly revision: number;
  readonly epoch: number;
  readonly holder: string;
}

/** Everything the replicas did, as the API server tells it. */
class Journal {
  readonly takings = new Map<number, Taking>();
  latest: (Write & { readonly seenAt: number }) | undefined;
  readonly #firstSeen = new Map<number, number>();
  readonly #stop = new AbortController();
  readonly #reading: Promise<unknown>;
  readonly #client: Client;
  readonly #namespace: string;

  constructor({ client, name }: TestNamespace) {
    this.#client = client;
    this.#namespace = name;
    this.#reading = Promise.all([this.#follow(() => this.#readLease()), this.#follow(() => this.#readWrites())]);
  }

  /** When the first write of an epoch was seen here, in milliseconds. */
  firstSeen(epoch: number): number | undefined {
    return this.#firstSeen.get(epoch);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#reading;
  }

  async writes(): Promise<Write[]> {
    const { items } = await this.#client.list(builtin.configMaps, {
      namespace: this.#namespace,
      labelSelector: writeLabel,
    });
    return items.map(writeOf);
  }

  async #follow(read: () => Promise<void>): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await read();
      } catch (error) {
        if (!this.#stop.signal.aborted) throw error;
      }
    }
  }

  async #readLease(): Promise<void> {
    const options = { namespace: this.#namespace, signal: this.#stop.signal };
    // From the beginning: no change of hands may be missed.
    for await (const event of this.#client.watch(builtin.leases, { ...options, resourceVersion: "0" })) {
      if (event.type === "BOOKMARK" || event.object.metadata.name !== leaseName) continue;
      const { holderIdentity: holder = "", leaseTransitions: epoch = 0 } = event.object.spec ?? {};
      const revision = Number(event.object.metadata.resourceVersion);
      if (holder !== "" && !this.takings.has(epoch)) this.takings.set(epoch, { revision, epoch, holder });
    }
  }

  async #readWrites(): Promise<void> {
    const options = { namespace: this.#namespace, labelSelector: writeLabel, signal: this.#stop.signal };
    for await (const event of this.#client.watch(builtin.configMaps, { ...options, resourceVersion: "0" })) {
      if (event.type !== "ADDED") continue;
      this.latest = { ...writeOf(event.object), seenAt: performance.now() };
      if (!this.#firstSeen.has(this.latest.epoch)) this.#firstSeen.set(this.latest.epoch, this.latest.seenAt);
    }
  }
}

function writeOf(object: NonNullable<typeof builtin.configMaps.object>): Write {
  const { epoch, replica = "" } = object.data ?? {};
  return { revision: Number(object.metadata.resourceVersion), epoch: Number(epoch), replica };
}

/** Writes that were not done by the holder of their epoch, or not while it held the lease. */
function trespasses(writes: readonly Write[], takings: ReadonlyMap<number, Taking>): string[] {
  return writes.flatMap(({ revision, epoch, replica }) => {
    const own = takings.get(epoch);
    const next = takings.get(epoch + 1);
    if (!own?.holder.startsWith(`${replica}_`))
      return [`${replica} wrote in epoch ${epoch} of ${own?.holder ?? "no one"}`];
    if (revision < own.revision) return [`${replica} wrote before it took the lease for epoch ${epoch}`];
    if (next && revision > next.revision) return [`${replica} wrote after ${next.holder} took the lease from it`];
    return [];
  });
}

class Replica {
  readonly name: string;
  readonly #child: Bun.Subprocess<"ignore", "ignore", Bun.BunFile>;

  constructor(name: string, options: { kubeconfig: string; namespace: string; fenced: boolean }) {
    this.name = name;
    const script = new URL("leader-replica.ts", import.meta.url).pathname;
    const { kubeconfig, namespace, fenced } = options;
    const args = [kubeconfig, namespace, name, fenced ? "fenced" : "open"];
    // The kernel ends it with the test, however that ends.
    const command = ["setpriv", "--pdeathsig", "KILL", "--", process.execPath, script, ...args];
    const stderr = Bun.file(`${kubeconfig}.${name}.log`);
    this.#child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async exited(): Promise<number> {
    return await this.#child.exited;
  }
}

/** Two replicas at all times, and their journal. */
class Contest {
  readonly journal: Journal;
  readonly #place: TestNamespace;
  readonly #fenced: boolean;
  readonly #replicas = new Map<string, Replica>();
  #born = 0;

  private constructor(place: TestNamespace, fenced: boolean) {
    this.#place = place;
    this.#fenced = fenced;
    this.journal = new Journal(place);
  }

  static async start(place: TestNamespace, fenced = true): Promise<Contest> {
    const metadata = { namespace: place.name, name: "seed" };
    await place.client.create(builtin.configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata });
    const contest = new Contest(place, fenced);
    contest.spawn();
    contest.spawn();
    await contest.someoneWrites();
    return contest;
  }

  spawn(): void {
    const name = `r${++this.#born}`;
    const { kubeconfig } = this.#place.server;
    this.#replicas.set(name, new Replica(name, { kubeconfig, namespace: this.#place.name, fenced: this.#fenced }));
  }

  /** The replica that has written last, once it has written since now. */
  async someoneWrites(): Promise<{ leader: Replica; epoch: number }> {
    const since = performance.now();
    const write = await waitFor(() => (this.journal.latest?.seenAt ?? 0) > since && this.journal.latest, {
      timeoutMs: 30_000,
      what: "a replica to write",
    });
    const leader = this.#replicas.get(write.replica);
    if (!leader) throw new Error(`${write.replica} wrote, which should be gone`);
    return { leader, epoch: write.epoch };
  }

  /** Milliseconds until a replica wrote in a later epoch. */
  async handOver(epoch: number, since: number): Promise<number> {
    const later = (): number | undefined => {
      const { latest } = this.journal;
      return latest && latest.epoch > epoch ? this.journal.firstSeen(latest.epoch) : undefined;
    };
    return (await waitFor(later, { timeoutMs: 30_000, what: "another replica to write" })) - since;
  }

  replace(replica: Replica): void {
    this.#replicas.delete(replica.name);
    this.spawn();
  }

  async close(): Promise<void> {
    for (const replica of this.#replicas.values()) replica.signal("SIGKILL");
    await Promise.all([...this.#replicas.values()].map((replica) => replica.exited()));
    await this.journal.close();
  }
}

const ways = {
  /** A rolling update: the leader gives the lease back. */
  async SIGTERM(contest: Contest): Promise<number> {
    const { leader, epoch } = await contest.someoneWrites();
    const at = performance.now();
    leader.signal("SIGTERM");
    const took = await contest.handOver(epoch, at);
    expect(await leader.exited()).toBe(0);
    contest.replace(leader);
    return took;
  },
  /** A crash: the lease has to expire. */
  async SIGKILL(contest: Contest): Promise<number> {
    const { leader, epoch } = await contest.someoneWrites();
    const at = performance.now();
    leader.signal("SIGKILL");
    const took = await contest.handOver(epoch, at);
    await leader.exited();
    contest.replace(leader);
    return took;
  },
  /** A frozen machine that comes back and believes it is still the leader. */
  async SIGSTOP(contest: Contest): Promise<number> {
    const { leader, epoch } = await contest.someoneWrites();
    const at = performance.now();
    leader.signal("SIGSTOP");
    const took = await contest.handOver(epoch, at);
    leader.signal("SIGCONT");
    // Time enough to do what it must not. Its alarm ends it, if it has one.
    const ended = await Promise.race([leader.exited(), Bun.sleep(500)]);
    if (ended !== undefined) contest.replace(leader);
    return took;
  },
} as const;

type Way = keyof typeof ways;

const figures = new Map<Way, number[]>();

afterAll(() => {
  for (const [way, times] of figures) {
    const sorted = times.toSorted((a, b) => a - b).map(Math.round);
    const median = sorted[Math.floor(sorted.length / 2)];
    console.log(`hand-over after ${way}: ${sorted.length}×, median ${median} ms, longest ${sorted.at(-1)} ms`);
  }
});

const twentyHandOvers: readonly Way[] = [
  ...(["SIGTERM", "SIGSTOP", "SIGTERM", "SIGKILL"] as const),
  ...(["SIGTERM", "SIGSTOP", "SIGSTOP", "SIGTERM"] as const),
  ...(["SIGKILL", "SIGTERM", "SIGTERM", "SIGSTOP"] as const),
  ...(["SIGTERM", "SIGKILL", "SIGSTOP", "SIGTERM"] as const),
  ...(["SIGTERM", "SIGSTOP", "SIGKILL", "SIGTERM"] as const),
];

/** More of the same, by hand: `HANDOVER_ROUNDS=50`. */
const rounds = Number(process.env["HANDOVER_ROUNDS"] ?? "1");

test(
  "two replicas and twenty forced hand-overs: never two writers",
  async () => {
    await using place = await testNamespace();
    const contest = await Contest.start(place);
    for (const way of Array.from({ length: rounds }, () => twentyHandOvers).flat()) {
      const took = await ways[way](contest);
      figures.set(way, [...(figures.get(way) ?? []), took]);
    }
    await contest.close();
    const { takings } = contest.journal;
    const writes = await contest.journal.writes();
    expect(trespasses(writes, takings)).toEqual([]);
    expect(takings.size).toBeGreaterThan(rounds * twentyHandOvers.length);
    expect(writes.length).toBeGreaterThan(100);
  },
  rounds * 300_000,
);

test("the journal would show it: without the fence, a leader that was frozen writes into the next term", async () => {
  await using place = await testNamespace();
  const contest = await Contest.start(place, false);
  const { journal } = contest;
  let found: string[] = [];
  // One that is frozen between two reconciles notices in time, by luck.
  for (let freeze = 1; freeze <= 10 && found.length === 0; freeze++) {
    await ways.SIGSTOP(contest);
    found = trespasses(await journal.writes(), journal.takings).filter((each) => each.includes("wrote after"));
  }
  await contest.close();
  expect(found).not.toEqual([]);
}, 120_000);
