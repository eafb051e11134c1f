/** The measured process: the poller of the operator, with its real connections. Prints one line of JSON. */
import { metricsRegistry, type Key } from "@pko/kube";
import { gitLister, gitPoller, type GitFollow } from "@pko/operator";

import type { ServerStart } from "./server.ts";

export interface PollerOptions extends ServerStart {
  readonly repositories: number;
  /** Servers that never respond, and as many names for which no DNS server responds. */
  readonly holes: number;
  /** How many polls of another tenant are requested, with and without its neighbors, and how long one is requested after the other. */
  readonly requests: number;
  readonly everyMs: number;
  readonly minuteMs: number;
}

export interface PollerFigures {
  /** Until every repository was read once. */
  readonly firstMs: number;
  readonly firstCpuMs: number;
  /** In one steady minute. */
  readonly cpuMs: number;
  readonly polls: number;
  readonly rssMb: number;
  readonly aloneMs: readonly number[];
  readonly withNeighborsMs: readonly number[];
  /** Polls of the neighbors in flight while those of the other tenant were requested. */
  readonly held: number;
}

const namespaces = 100;
/** Of the servers that never respond, and of the names. */
const hostileNamespaces = 8;
/** Of the other tenant. Each has been answered long before its next request. */
const quietStacks = 100;

class Bench {
  readonly #options: PollerOptions;
  readonly #metrics = metricsRegistry();
  readonly #wakers = new Map<Key, () => void>();
  readonly #poller;
  #requests = 0;

  constructor(options: PollerOptions) {
    this.#options = options;
    const addresses = Array.from({ length: options.holes }, (_, index) => holeAddress(index));
    const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1", ...addresses] };
    this.#poller = gitPoller({
      lister: gitLister({ policy, inherited: {} }),
      wake: (key) => this.#wakers.get(key)?.(),
      metrics: this.#metrics,
    });
  }

  /** Resolves when the Stack has a result. */
  async follow(key: Key, url: string, request = "1"): Promise<void> {
    const wanted: GitFollow = {
      url,
      credentials: { kind: "none" },
      ca: this.#options.cert,
      ref: { kind: "branch", name: "main" },
      everyMs: 60_000,
      request,
    };
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wakers.set(key, () => {
      const seen = this.#poller.latest(key, wanted);
      if (seen.kind === "pending") return;
      this.#poller.follow(key, wanted, seen);
      resolve();
    });
    this.#poller.follow(key, wanted, { kind: "pending" });
    await promise;
  }

  /** Until the process ends. */
  async followAgainAndAgain(key: Key): Promise<never> {
    for (let request = 1; ; request++) await this.follow(key, this.repository(key), String(request));
  }

  repository(key: Key): string {
    return `https://127.0.0.1:${this.#options.port}/${key}.git`;
  }

  /** The times from a request to its result. Requests are at fixed times, whether or not the ones before have a result. */
  async requested(): Promise<number[]> {
    const { requests, everyMs } = this.#options;
    const begin = performance.now();
    const times = Array.from({ length: requests }, async (_, index) => {
      const due = begin + index * everyMs;
      await Bun.sleep(due - performance.now());
      const key = `quiet/s${index % quietStacks}`;
      await this.follow(key, this.repository(key), `request ${++this.#requests}`);
      return performance.now() - due;
    });
    return await Promise.all(times);
  }

  value(line: string): number {
    return Number(this.#metrics.expose().split(`\n${line} `)[1]?.split("\n")[0] ?? 0);
  }

  get polls(): number {
    return this.value('git_poll_duration_seconds_count{transport="http"}');
  }

  get inFlight(): number {
    return this.value('git_polls_in_flight{transport="http"}');
  }
}

const holeAddress = (index: number): string => `127.1.${Math.floor(index / 250)}.${(index % 250) + 1}`;

async function run(options: PollerOptions): Promise<PollerFigures> {
  const bench = new Bench(options);
  const start = { at: performance.now(), cpu: process.cpuUsage() };
  const keys = Array.from({ length: options.repositories }, (_, index) => `ns-${index % namespaces}/s${index}`);
  await Promise.all(keys.map((key) => bench.follow(key, bench.repository(key))));
  const [firstMs, firstCpuMs] = [performance.now() - start.at, cpuMs(start.cpu)];
  // In the first interval, repositories are polled at random times.
  await Bun.sleep(options.minuteMs);
  const steady = { cpu: process.cpuUsage(), polls: bench.polls };
  await Bun.sleep(options.minuteMs);
  const figures = {
    cpuMs: cpuMs(steady.cpu),
    polls: bench.polls - steady.polls,
    rssMb: process.memoryUsage.rss() / 1e6,
  };
  const aloneMs = await bench.requested();
  for (let index = 0; index < options.holes; index++) {
    const namespace = index % hostileNamespaces;
    void bench.follow(`noisy-${namespace}/s${index}`, `http://${holeAddress(index)}:${options.tarpitPort}/r.git`);
    void bench.follow(`nameless-${namespace}/s${index}`, `https://host-${index}.example.com/r.git`);
  }
  void bench.followAgainAndAgain("huge/s");
  await Bun.sleep(1000);
  const held = bench.inFlight;
  const withNeighborsMs = await bench.requested();
  return { firstMs, firstCpuMs, ...figures, aloneMs, withNeighborsMs, held };
}

function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

if (import.meta.main) {
  console.log(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "{}") as PollerOptions)));
  process.exit(0);
}
