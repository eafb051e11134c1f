/**
 * Ten thousand idle Stacks and their history: `bun bench/parts/scale/main.ts [--stacks=10000] [--updates=15] [--window=600]
 * [--quiet=360] [--changes=1000] [--json]`. The compiled operator runs with a real API server and without a cluster, since idle Stacks have no pods.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { repositoryRoot, run } from "@pko/cluster";
import { builtin, isAlreadyExists, resource, type KubeObject, type Resource } from "@pko/kube";
import { programs, stacks, updates } from "@pko/operator";
import { buildOperator } from "@pko/operator/build";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";

import { storeObjects, type StoredObject } from "./etcd.ts";
import type { Phase, ScaleFigures } from "./figures.ts";
import { OperatorProcess } from "../operator-process.ts";
import { copiesOf, stackObjects, updateObjects, type Copy, type IdleStack, type Population } from "./population.ts";
import { addedSince, onlyWrites, requestsIn } from "./requests.ts";

const { values } = parseArgs({
  options: {
    stacks: { type: "string", default: "10000" },
    /** For each Stack. */
    updates: { type: "string", default: "15" },
    /** Seconds in which the idle operator is observed. */
    window: { type: "string", default: "600" },
    /** Seconds before that: for five minutes after the last change of a kind, its store is compared more often. */
    quiet: { type: "string", default: "360" },
    /** Stacks that are changed at the end, as fast as possible. */
    changes: { type: "string", default: "1000" },
    /** Seconds before memory is read. */
    settle: { type: "string", default: "30" },
    executable: { type: "string" },
    json: { type: "boolean", default: false },
  },
});

const namespaceCount = 100;
const probeCount = 10;
const catchUpTimeoutMs = 300_000;
const warmTimeoutMs = 600_000;

const say = (text: string): void => void (values.json || console.error(text));

interface Bench {
  readonly server: ApiServer;
  readonly executable: string;
  readonly folder: string;
  readonly copies: readonly Copy[];
}

async function measure(): Promise<ScaleFigures> {
  const folder = await mkdtemp(join(tmpdir(), "pko-scale-"));
  say("bringing a Stack to rest");
  const script = join(repositoryRoot, "test/scale/idle-stack.ts");
  const template = JSON.parse(await run([process.execPath, script])) as IdleStack;
  const executable = values.executable ?? (await compiled(folder));
  // Otherwise it would use several times the memory of its objects.
  const server = await startApiServer({ env: { GOGC: "50" } });
  try {
    return await measureOn({ server, executable, folder }, template);
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function compiled(folder: string): Promise<string> {
  say("compiling the operator");
  const executable = join(folder, "operator");
  await buildOperator({ outfile: executable });
  return executable;
}

async function measureOn(parts: Omit<Bench, "copies">, template: IdleStack): Promise<ScaleFigures> {
  const { server } = parts;
  const namespaces = Array.from({ length: namespaceCount }, (_, index) => `ns-${String(index).padStart(3, "0")}`);
  await install(server, namespaces);
  const population: Population = { template, namespaces, count: Number(values.stacks) };
  const copies = copiesOf(population);
  const phases: Phase[] = [await startOnce({ ...parts, copies: [] }, { stacks: 0, updates: 0 })];
  say("storing the Stacks");
  await store(server, stackObjects(population, copies));
  phases.push(await startOnce({ ...parts, copies }, { stacks: copies.length, updates: 0 }));
  const each = Number(values.updates);
  const all = { stacks: copies.length, updates: copies.length * each };
  if (each > 0) {
    say("storing the Updates");
    await store(server, updateObjects(population, copies, each));
    phases.push(await startOnce({ ...parts, copies }, all));
  }
  const { operator, ...last } = await start({ ...parts, copies }, all);
  phases.push(last);
  const window = await observe(operator, server);
  const changes = await change(operator, server, copies.slice(0, Number(values.changes)));
  await operator.stop();
  return { phases, window, ...(changes && { changes }) };
}

/** Requests of the benchmark at the same time. */
const changeWidth = 20;

/** Changes the Stacks, and waits until the operator has written the status of all of them. Undefined without Stacks. */
async function change(
  operator: OperatorProcess,
  server: ApiServer,
  changed: readonly Copy[],
): Promise<ScaleFigures["changes"]> {
  if (changed.length === 0) return undefined;
  say(`changing ${changed.length} Stacks`);
  const { cpuMs } = operator.usage();
  const begin = performance.now();
  const limit = { timeoutMs: catchUpTimeoutMs, what: "the operator to observe the changes" };
  await inParallel(changed, (copy) => toggleSuspend(server, copy));
  await operator.whileRunning(inParallel(changed, (copy) => waitFor(() => isObserved(server, copy), limit)));
  const observedMs = performance.now() - begin;
  return { count: changed.length, observedMs, cpuMs: operator.usage().cpuMs - cpuMs };
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const waiting = items.values();
  const takeTurns = async (): Promise<void> => {
    for (const item of waiting) await work(item);
  };
  await Promise.all(Array.from({ length: changeWidth }, takeTurns));
}

/** The watch cache of a running API server does not expect several objects with one revision; a new one lists them. */
async function store(server: ApiServer, objects: Iterable<StoredObject>): Promise<void> {
  await storeObjects(server.etcdUrl, objects);
  await server.restart();
  // From the cache, which the API server fills first: the request waits for that, and may time out.
  const readFromCache = async ({ apiVersion, plural }: Resource): Promise<boolean> => {
    const query = "resourceVersion=0&fieldSelector=metadata.name%3Dnone";
    await server.kubectl(["get", "--raw", `/apis/${apiVersion}/${plural}?${query}`]);
    return true;
  };
  for (const kind of [stacks, updates]) {
    await waitFor(() => readFromCache(kind), { timeoutMs: warmTimeoutMs, what: "the API server to fill its caches" });
  }
}

async function install(server: ApiServer, namespaces: readonly string[]): Promise<void> {
  await server.kubectl(["apply", "--filename", join(repositoryRoot, "deploy/quickstart/install.yaml")]);
  await server.kubectl(["wait", "crd", "stacks.pulumi.com", "updates.auto.pulumi.com", "--for=condition=Established"]);
  for (const name of ["pulumi-kubernetes-operator", ...namespaces]) {
    await ignoringExisting(
      server.client.create(builtin.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name } }),
    );
  }
  for (const namespace of namespaces) {
    const { apiVersion, kind } = programs;
    await server.client.create(programs, { apiVersion, kind, metadata: { name: "program", namespace }, program: {} });
  }
}

async function ignoringExisting(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
}

async function startOnce(bench: Bench, size: Pick<Phase, "stacks" | "updates">): Promise<Phase> {
  const { operator, ...phase } = await start(bench, size);
  await operator.stop();
  return phase;
}

/** Starts the operator after a few Stacks were changed: when it has reconciled them, it has caught up. */
async function start(
  bench: Bench,
  size: Pick<Phase, "stacks" | "updates">,
): Promise<Phase & { readonly operator: OperatorProcess }> {
  const { server, executable, folder, copies } = bench;
  say(`${size.stacks} Stacks, ${size.updates} Updates: starting`);
  const step = Math.max(1, Math.floor(copies.length / probeCount));
  const probes = copies.filter((_, index) => index % step === 0).slice(0, probeCount);
  for (const probe of probes) await toggleSuspend(server, probe);
  const begin = performance.now();
  const { kubeconfig } = server;
  const namespace = "pulumi-kubernetes-operator";
  const operator = await OperatorProcess.start({ executable, kubeconfig, namespace, folder });
  const limit = { timeoutMs: catchUpTimeoutMs, what: "the operator to catch up" };
  for (const probe of probes) await operator.whileRunning(waitFor(async () => isObserved(server, probe), limit));
  const caughtUpMs = performance.now() - begin;
  await operator.whileRunning(waitFor(async () => (await operator.metric("workqueue_depth")) === 0, limit));
  const drainedMs = performance.now() - begin;
  const { cpuMs: startCpuMs } = operator.usage();
  await Bun.sleep(Number(values.settle) * 1000);
  const phase = { ...size, caughtUpMs, drainedMs, startCpuMs, usage: operator.usage(), operator };
  say(describe(phase));
  return phase;
}

interface SuspendableStack extends KubeObject {
  readonly spec?: { readonly suspend?: boolean };
  readonly status?: { readonly observedGeneration?: number };
}

const suspendable = resource<SuspendableStack>(stacks);

async function toggleSuspend({ client }: ApiServer, ref: Copy): Promise<void> {
  const { spec } = await client.get(suspendable, ref);
  const patch = { type: "merge", body: { spec: { suspend: !(spec?.suspend ?? false) } } } as const;
  await client.patch(suspendable, ref, { patch });
}

async function isObserved({ client }: ApiServer, ref: Copy): Promise<boolean> {
  const { metadata, status } = await client.get(suspendable, ref);
  return status?.observedGeneration === metadata.generation;
}

async function observe(operator: OperatorProcess, server: ApiServer): Promise<ScaleFigures["window"]> {
  const seconds = Number(values.window);
  await Bun.sleep(Number(values.quiet) * 1000);
  say(`observing for ${seconds} s`);
  const before = { usage: operator.usage(), sent: await sentBy(operator), served: await requestsIn(server) };
  await Bun.sleep(seconds * 1000);
  const usage = operator.usage();
  const served = addedSince(before.served, await requestsIn(server));
  const sent = await sentBy(operator);
  return {
    seconds,
    usage,
    cpuMs: usage.cpuMs - before.usage.cpuMs,
    requests: sent.all - before.sent.all,
    renewals: sent.renewals - before.sent.renewals,
    writes: onlyWrites(served),
    served,
  };
}

/** Everything that an idle operator writes is a renewal of its Lease. */
async function sentBy(operator: OperatorProcess): Promise<{ readonly all: number; readonly renewals: number }> {
  const series = await operator.series("rest_client_requests_total");
  const total = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
  const reads = [...series].filter(([labels]) => labels.includes('method="GET"')).map(([, count]) => count);
  const all = total([...series.values()]);
  return { all, renewals: all - total(reads) };
}

function describe({ stacks, updates, caughtUpMs, drainedMs, startCpuMs, usage }: Phase): string {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  return [
    `${stacks} Stacks, ${updates} Updates:`,
    `caught up ${seconds(caughtUpMs)}, drained ${seconds(drainedMs)}, CPU ${seconds(startCpuMs)},`,
    `resident ${usage.residentMb.toFixed(0)} MB (anonymous ${usage.anonymousMb.toFixed(0)}, peak ${usage.peakMb.toFixed(0)})`,
  ].join(" ");
}

const figures = await measure();
console.log(JSON.stringify(figures, undefined, values.json ? 0 : 1));
process.exit(0);
