/**
 * The runtime with many objects: `bun bench/parts/kube/main.ts [--objects=5000] [--bytes=3000] [--json]`.
 *
 * Three processes share the machine: the API server, this one, and the measured one (holder.ts). Prints a table
 * for people and, last, one line of JSON for machines.
 */
import { parseArgs } from "node:util";

import { builtin, done, workQueue } from "@pko/kube";
import { startApiServer } from "@pko/testkit";

import type { ChurnFigures, SyncFigures } from "./holder.ts";
import { churn, configMap, namespaceName, populate, type Population } from "./objects.ts";
import { startReplayServer } from "./replay-server.ts";

/** The measured process and its output. */
class Holder {
  readonly #child: Bun.Subprocess<"pipe", "pipe", "inherit">;
  readonly #lines: AsyncGenerator<string, undefined>;

  constructor(target: string) {
    const script = new URL("holder.ts", import.meta.url).pathname;
    this.#child = Bun.spawn([process.execPath, script, target], { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    this.#lines = lines(this.#child.stdout);
  }

  async synced(): Promise<SyncFigures> {
    return await this.#next<SyncFigures>();
  }

  /** Measures this many changes, which `cause` makes. */
  async changes(count: number, cause: () => unknown): Promise<ChurnFigures> {
    await this.#child.stdin.write(`${count}\n`);
    await this.#child.stdin.flush();
    // Time to read the line before the first change.
    await Bun.sleep(100);
    const [figures] = await Promise.all([this.#next<ChurnFigures>(), cause()]);
    return figures;
  }

  async stop(): Promise<void> {
    this.#child.kill();
    await this.#child.exited;
  }

  async #next<T extends SyncFigures | ChurnFigures>(): Promise<T> {
    const line = await this.#lines.next();
    return JSON.parse(line.value ?? "{}") as T;
  }
}

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let open = "";
  for await (const chunk of stream) {
    const parts = (open + decoder.decode(chunk, { stream: true })).split("\n");
    open = parts.pop() ?? "";
    yield* parts;
  }
  return undefined;
}

interface Figure {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
}

async function againstApiServer(population: Population): Promise<Figure[]> {
  await using server = Object.assign(await startApiServer(), {
    async [Symbol.asyncDispose](this: { stop(): Promise<void> }) {
      await this.stop();
    },
  });
  await populate(server.client, population);
  const holder = new Holder(server.kubeconfig);
  try {
    const sync = await holder.synced();
    const change = async (changes: number, writers: number): Promise<ChurnFigures> =>
      await holder.changes(changes, () => churn(server.client, { ...population, changes, writers }));
    const crowd = await change(2000, 16);
    const single = await change(300, 1);
    const latencies = single.latenciesMs.toSorted((a, b) => a - b);
    const share = (part: number): number => latencies[Math.floor(latencies.length * part)] ?? NaN;
    const { items } = await server.client.list(builtin.configMaps, { namespace: namespaceName(0) });
    return [
      { what: "size of an object", value: JSON.stringify(items).length / items.length, unit: "bytes" },
      { what: "time to sync", value: sync.syncMs, unit: "ms" },
      { what: "resident before", value: sync.rssBeforeBytes / 1e6, unit: "MB" },
      { what: "resident when synced", value: sync.rssAfterBytes / 1e6, unit: "MB" },
      { what: "resident when settled", value: sync.rssSettledBytes / 1e6, unit: "MB" },
      { what: "changes per second by 16 writers", value: (crowd.changes / crowd.ms) * 1000, unit: "/s" },
      { what: "one writer: before the write to the reconcile, median", value: share(0.5), unit: "ms" },
      { what: "one writer: before the write to the reconcile, 99 %", value: share(0.99), unit: "ms" },
    ];
  } finally {
    await holder.stop();
  }
}

async function againstReplay(population: Population): Promise<Figure[]> {
  const objects = Array.from({ length: population.objects }, (_, i) => configMap(i, population));
  const server = startReplayServer(objects);
  const holder = new Holder(server.url);
  try {
    await holder.synced();
    const rounds = 10;
    const run = (): Promise<ChurnFigures> => holder.changes(rounds * objects.length, () => server.replay(rounds));
    const first = await run();
    const { changes, reconciles, ms, rssSettledBytes } = await run();
    return [
      { what: "replayed changes per second through store and queue", value: (changes / ms) * 1000, unit: "/s" },
      { what: "reconciles per second at the same time", value: (reconciles / ms) * 1000, unit: "/s" },
      { what: "resident after the first run", value: first.rssSettledBytes / 1e6, unit: "MB" },
      { what: "resident after the second, identical run", value: rssSettledBytes / 1e6, unit: "MB" },
    ];
  } finally {
    await holder.stop();
    await server.stop();
  }
}

async function queueAlone(): Promise<Figure[]> {
  const keys = 200_000;
  const queue = workQueue({ name: "bench", concurrency: 10 });
  const all = Promise.withResolvers<void>();
  let processed = 0;
  const from = performance.now();
  for (let i = 0; i < keys; i++) queue.add(`ns-${i % 100}/key-${i}`);
  queue.start(async () => {
    if (++processed === keys) all.resolve();
    return done;
  });
  await all.promise;
  return [
    { what: "keys per second through the queue alone", value: (keys / (performance.now() - from)) * 1000, unit: "/s" },
  ];
}

function print(figures: readonly Figure[]): void {
  const width = Math.max(...figures.map(({ what }) => what.length));
  for (const { what, value, unit } of figures) {
    const text = value.toFixed(unit === "MB" ? 1 : 0).padStart(8);
    console.log(`${what.padEnd(width)} ${text} ${unit}`);
  }
}

const { values: options } = parseArgs({
  options: {
    objects: { type: "string", default: "5000" },
    bytes: { type: "string", default: "3000" },
    json: { type: "boolean", default: false },
  },
});
const population: Population = { objects: Number(options.objects), bytes: Number(options.bytes), namespaces: 10 };
const figures = [
  ...(await againstApiServer(population)),
  ...(await againstReplay(population)),
  ...(await queueAlone()),
];
if (!options.json) print(figures);
console.log(JSON.stringify({ ...population, figures }));
