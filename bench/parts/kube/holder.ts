/**
 * The process whose memory and speed are measured: a reflector, its store, and a controller that does nothing. It prints its
 * measurements to standard output, one line of JSON each, and reads the number of expected changes from standard input.
 */
import {
  builtin,
  connect,
  controller,
  done,
  kubeconfigCredentials,
  manager,
  reflector,
  staticCredentials,
  type Credentials,
} from "@pko/kube";

export interface SyncFigures {
  readonly rssBeforeBytes: number;
  readonly syncMs: number;
  readonly rssAfterBytes: number;
  readonly rssSettledBytes: number;
  readonly objects: number;
}

export interface ChurnFigures {
  readonly changes: number;
  readonly reconciles: number;
  readonly ms: number;
  /** From before the write to the reconcile, for changes with a timestamp. */
  readonly latenciesMs: readonly number[];
  readonly rssSettledBytes: number;
}

function print(figures: SyncFigures | ChurnFigures): void {
  console.log(JSON.stringify(figures));
}

async function readCredentials(target: string): Promise<Credentials> {
  return target.startsWith("http:")
    ? staticCredentials({ server: target, tls: {} })
    : await kubeconfigCredentials(target);
}

async function run(target: string): Promise<void> {
  const client = connect(await readCredentials(target));
  const seen = { changes: 0, reconciles: 0, firstAt: 0, lastAt: 0, latenciesMs: [0] };
  const maps = reflector(client, builtin.configMaps);
  maps.store.subscribe(() => {
    seen.lastAt = performance.now();
    if (seen.changes++ === 0) seen.firstAt = seen.lastAt;
  });
  const counter = controller({
    name: "counter",
    reflector: maps,
    async reconcile(key, { now }) {
      seen.reconciles++;
      const at = maps.store.get(key)?.metadata.annotations?.["bench/at"];
      if (at !== undefined) seen.latenciesMs.push(now - Number(at));
      return done;
    },
  });
  const process = manager({ reflectors: { maps }, controllers: [counter] });

  Bun.gc(true);
  const rssBeforeBytes = rss();
  const startedAt = performance.now();
  void process.run(new AbortController().signal);
  await maps.waitForSync();
  const syncMs = performance.now() - startedAt;
  const rssAfterBytes = rss();
  while (seen.reconciles < maps.store.size) await Bun.sleep(10);
  print({ rssBeforeBytes, syncMs, rssAfterBytes, rssSettledBytes: await settledRss(), objects: maps.store.size });

  for await (const line of console) {
    const expected = Number(line);
    Object.assign(seen, { changes: 0, reconciles: 0, latenciesMs: [] });
    while (seen.changes < expected) await Bun.sleep(20);
    const { changes, reconciles, latenciesMs } = seen;
    print({ changes, reconciles, latenciesMs, ms: seen.lastAt - seen.firstAt, rssSettledBytes: await settledRss() });
  }
}

async function settledRss(): Promise<number> {
  Bun.gc(true);
  await Bun.sleep(2000);
  return rss();
}

function rss(): number {
  return process.memoryUsage.rss();
}

if (import.meta.main) await run(Bun.argv[2] ?? "");
