import { afterAll, expect, test } from "bun:test";
import { constants } from "node:os";

import { builtin, type Client } from "@pko/kube";
import { programPath, testNamespace, waitFor, type TestNamespace } from "@pko/testkit";
import { leaseName, writeLabel } from "./leader-replica.ts";

/** A write with its etcd revision: the order that all replicas share. */
interface Write {
  readonly revision: number;
  readonly epoch: number;
  readonly replica: string;
}

/** When a replica took the lease, in the same order. */
interface Acquisition {
  readonly revision: number;
  readonly epoch: number;
  readonly holder: string;
}

/** Everything the replicas did, from the API server. */
class Journal {
  readonly acquisitions = new Map<number, Acquisition>();
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
    return items.map(toWrite);
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
    // From the beginning, so that no change of the holder is missed.
    for await (const event of this.#client.watch(builtin.leases, { ...options, resourceVersion: "0" })) {
      if (event.type === "BOOKMARK" || event.object.metadata.name !== leaseName) continue;
      const { holderIdentity: holder = "", leaseTransitions: epoch = 0 } = event.object.spec ?? {};
      const revision = Number(event.object.metadata.resourceVersion);
      if (holder !== "" && !this.acquisitions.has(epoch)) this.acquisitions.set(epoch, { revision, epoch, holder });
    }
  }

  async #readWrites(): Promise<void> {
    const options = { namespace: this.#namespace, labelSelector: writeLabel, signal: this.#stop.signal };
    for await (const event of this.#client.watch(builtin.configMaps, { ...options, resourceVersion: "0" })) {
      if (event.type !== "ADDED") continue;
      this.latest = { ...toWrite(event.object), seenAt: performance.now() };
      if (!this.#firstSeen.has(this.latest.epoch)) this.#firstSeen.set(this.latest.epoch, this.latest.seenAt);
    }
  }
}

function toWrite(object: NonNullable<typeof builtin.configMaps.object>): Write {
  const { epoch, replica = "" } = object.data ?? {};
  return { revision: Number(object.metadata.resourceVersion), epoch: Number(epoch), replica };
}

/** Writes that were not made by the holder of their epoch, or not while it held the lease. */
function violations(writes: readonly Write[], acquisitions: ReadonlyMap<number, Acquisition>): string[] {
  return writes.flatMap(({ revision, epoch, replica }) => {
    const own = acquisitions.get(epoch);
    const next = acquisitions.get(epoch + 1);
    if (!own?.holder.startsWith(`${replica}_`))
      return [`${replica} wrote in epoch ${epoch} of ${own?.holder ?? "nobody"}`];
    if (revision < own.revision) return [`${replica} wrote before it took the lease for epoch ${epoch}`];
    if (next && revision > next.revision) return [`${replica} wrote after ${next.holder} took the lease from it`];
    return [];
  });
}

class Replica {
  readonly name: string;
  readonly #child: Bun.Subprocess<"ignore", "ignore", Bun.BunFile>;
  readonly #log: Bun.BunFile;

  constructor(name: string, options: { kubeconfig: string; namespace: string; fenced: boolean }) {
    this.name = name;
    const { kubeconfig, namespace, fenced } = options;
    const args = [kubeconfig, namespace, name, fenced ? "fenced" : "open"];
    // The kernel kills it when the test ends for any reason.
    const command = ["setpriv", "--pdeathsig", "KILL", "--", process.execPath, programPath("leader-replica"), ...args];
    this.#log = Bun.file(`${kubeconfig}.${name}.log`);
    this.#child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: this.#log });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async exited(): Promise<number> {
    return await this.#child.exited;
  }

  /** Its alarm has ended it, or it has lost the lease of this epoch and finished its last reconcile. */
  async hasStoppedWriting(epoch: number): Promise<boolean> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return true;
    const lines = (await this.#log.text()).split("\n");
    const lost = lines.findIndex((line) => line.includes('"lost the lease"') && line.includes(`"epoch":${epoch},`));
    return lost >= 0 && lines.slice(lost).some((line) => line.includes('"controller stopped"'));
  }
}

/** Always two replicas, and their journal. */
class Contest implements AsyncDisposable {
  readonly journal: Journal;
  readonly #place: TestNamespace;
  readonly #fenced: boolean;
  readonly #replicas = new Map<string, Replica>();
  #spawned = 0;

  private constructor(place: TestNamespace, fenced: boolean) {
    this.#place = place;
    this.#fenced = fenced;
    this.journal = new Journal(place);
  }

  static async start(place: TestNamespace, fenced = true): Promise<Contest> {
    const metadata = { namespace: place.name, name: "seed" };
    await place.client.create(builtin.configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata });
    const contest = new Contest(place, fenced);
    contest.#spawn();
    contest.#spawn();
    return contest;
  }

  #spawn(): void {
    const name = `r${++this.#spawned}`;
    const { kubeconfig } = this.#place.server;
    const replica = new Replica(name, { kubeconfig, namespace: this.#place.name, fenced: this.#fenced });
    this.#replicas.set(name, replica);
    // On a busy machine, a leader may also end because it could not renew its Lease in time.
    void replica.exited().then(() => this.#replace(replica));
  }

  /** Waits for the next write and returns its replica. */
  async nextWrite(): Promise<{ leader: Replica; epoch: number }> {
    const since = performance.now();
    const next = (): { leader: Replica; epoch: number } | undefined => {
      const { seenAt = 0, replica = "", epoch = 0 } = this.journal.latest ?? {};
      const leader = this.#replicas.get(replica);
      return leader && seenAt > since ? { leader, epoch } : undefined;
    };
    return await waitFor(next, { timeoutMs: 30_000, what: "a replica to write" });
  }

  /** Milliseconds until a replica writes in a later epoch. */
  async handover(epoch: number, since: number): Promise<number> {
    const later = (): number | undefined => {
      const { latest } = this.journal;
      return latest && latest.epoch > epoch ? this.journal.firstSeen(latest.epoch) : undefined;
    };
    return (await waitFor(later, { timeoutMs: 30_000, what: "another replica to write" })) - since;
  }

  #replace(replica: Replica): void {
    if (this.#replicas.delete(replica.name)) this.#spawn();
  }

  async close(): Promise<void> {
    const replicas = [...this.#replicas.values()];
    this.#replicas.clear();
    for (const replica of replicas) replica.signal("SIGKILL");
    await Promise.all(replicas.map((replica) => replica.exited()));
    await this.journal.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const ways = {
  /** A rolling update: the leader releases the lease. */
  async SIGTERM(contest: Contest): Promise<number> {
    const { leader, epoch } = await contest.nextWrite();
    const at = performance.now();
    leader.signal("SIGTERM");
    const took = await contest.handover(epoch, at);
    // On a busy machine, its alarm or the time limit for its end may end it.
    expect([0, 1, 128 + constants.signals.SIGALRM]).toContain(await leader.exited());
    return took;
  },
  /** A crash: the lease has to expire. */
  async SIGKILL(contest: Contest): Promise<number> {
    const { leader, epoch } = await contest.nextWrite();
    const at = performance.now();
    leader.signal("SIGKILL");
    const took = await contest.handover(epoch, at);
    await leader.exited();
    return took;
  },
  /** A frozen machine that comes back and believes it is still the leader. */
  async SIGSTOP(contest: Contest): Promise<number> {
    const { leader, epoch } = await contest.nextWrite();
    const at = performance.now();
    leader.signal("SIGSTOP");
    const took = await contest.handover(epoch, at);
    leader.signal("SIGCONT");
    // Any forbidden write comes before that.
    await waitFor(() => leader.hasStoppedWriting(epoch), { timeoutMs: 30_000, what: "the thawed replica to stop" });
    return took;
  },
} as const;

type Way = keyof typeof ways;

const figures = new Map<Way, number[]>();

afterAll(() => {
  for (const [way, times] of figures) {
    const sorted = times.toSorted((a, b) => a - b).map(Math.round);
    const median = sorted[Math.floor(sorted.length / 2)];
    console.log(`handover after ${way}: ${sorted.length}×, median ${median} ms, longest ${sorted.at(-1)} ms`);
  }
});

const twentyHandovers: readonly Way[] = [
  ...(["SIGTERM", "SIGSTOP", "SIGTERM", "SIGKILL"] as const),
  ...(["SIGTERM", "SIGSTOP", "SIGSTOP", "SIGTERM"] as const),
  ...(["SIGKILL", "SIGTERM", "SIGTERM", "SIGSTOP"] as const),
  ...(["SIGTERM", "SIGKILL", "SIGSTOP", "SIGTERM"] as const),
  ...(["SIGTERM", "SIGSTOP", "SIGKILL", "SIGTERM"] as const),
];

/** For more rounds: `HANDOVER_ROUNDS=50`. */
const rounds = Number(process.env["HANDOVER_ROUNDS"] ?? "1");

test(
  "two replicas never write at the same time during twenty forced handovers",
  async () => {
    await using place = await testNamespace();
    await using contest = await Contest.start(place);
    for (const way of Array.from({ length: rounds }, () => twentyHandovers).flat()) {
      const took = await ways[way](contest);
      figures.set(way, [...(figures.get(way) ?? []), took]);
    }
    await contest.close();
    const { acquisitions } = contest.journal;
    const writes = await contest.journal.writes();
    expect(violations(writes, acquisitions)).toEqual([]);
    expect(acquisitions.size).toBeGreaterThan(rounds * twentyHandovers.length);
    expect(writes.length).toBeGreaterThan(100);
  },
  rounds * 300_000,
);

test("the journal detects a violation: without the fence, a frozen leader writes in the next term", async () => {
  await using place = await testNamespace();
  await using contest = await Contest.start(place, false);
  const { journal } = contest;
  let found: string[] = [];
  // A leader that is frozen between two reconciles notices in time.
  for (let freeze = 1; freeze <= 10 && found.length === 0; freeze++) {
    await ways.SIGSTOP(contest);
    found = violations(await journal.writes(), journal.acquisitions).filter((each) => each.includes("wrote after"));
  }
  await contest.close();
  expect(found).not.toEqual([]);
}, 180_000);
