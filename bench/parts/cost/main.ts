/**
 * What one creation, one change and one deletion of a Stack cost: requests of the operator by verb and resource, and CPU of
 * the operator and the API server. `bun bench/parts/cost/main.ts [--idle=seconds] [--rounds=1]` prints a table, with `--json` the figures.
 * It needs no cluster: a real API server, the StatefulSet controller, the compiled operator, and agents as processes.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { isComplete, type Stack, type Update } from "@pko/api";
import { reflector, refKey, type Reflector } from "@pko/kube";
import { programs, stacks, updates } from "@pko/operator";
import {
  faultProxy,
  spawnChild,
  testNamespace,
  waitFor,
  type ChildProcess,
  type FaultProxy,
  type TestNamespace,
} from "@pko/testkit";

import { CountingCli } from "../../../test/faults/counting-cli.ts";
import { FakeKubelet } from "../../../test/faults/fake-kubelet.ts";
import { setStage, type Stage } from "../../../test/faults/stage.ts";
import { operatorAccount } from "../../../test/rights/account.ts";
import { buildExecutables } from "../executables.ts";
import { averages, costTable, countRequests, type Cost } from "./table.ts";

const given = (name: string, byDefault: number): number =>
  Number(new RegExp(`--${name}=(\\d+)`).exec(process.argv.join(" "))?.[1] ?? byDefault);
const idleSeconds = given("idle", 0);
const rounds = given("rounds", 1);

/** Long enough for what follows a success: finalizers, events, the deletion of finished objects. */
const settleMs = 2500;
const timeoutMs = 60_000;

class Bed {
  readonly #stage: Stage;
  readonly #place: TestNamespace;
  readonly #proxy: FaultProxy;
  readonly #operator: ChildProcess;
  readonly #folder: string;
  /** Requests of the benchmark itself would count as CPU of the API server, so it watches instead of polling. */
  readonly #stacks: Reflector<Stack>;
  readonly #updates: Reflector<Update>;
  readonly #end = new AbortController();

  constructor(stage: Stage, place: TestNamespace, proxy: FaultProxy) {
    this.#stage = stage;
    this.#place = place;
    this.#proxy = proxy;
    this.#folder = join(stage.folder, place.name);
    mkdirSync(join(this.#folder, "backend"), { recursive: true });
    this.#stacks = reflector(place.client, stacks, { namespaces: [place.name] });
    this.#updates = reflector(place.client, updates, { namespaces: [place.name] });
    for (const each of [this.#stacks, this.#updates]) void each.run(this.#end.signal);
    const kubeconfig = join(this.#folder, "kubeconfig");
    writeFileSync(kubeconfig, proxy.kubeconfig);
    const flags = {
      kubeconfig,
      namespace: place.name,
      "watch-namespaces": place.name,
      "agent-image": "agent:1",
      "pod-name": "operator",
      "probe-address": "127.0.0.1:0",
      "metrics-address": "127.0.0.1:0",
    };
    const given = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const command = [...stage.programs.operator, ...given];
    this.#operator = spawnChild({ command, logFile: join(this.#folder, "operator.log") });
  }

  kubelet(): FakeKubelet {
    return new FakeKubelet({
      client: this.#place.client,
      namespace: this.#place.name,
      folder: this.#folder,
      agent: this.#stage.programs.agent,
      pulumi: new CountingCli(this.#folder, "pulumi").path,
      arrive: () => undefined,
      crash: () => Promise.resolve(),
    });
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#operator.stop("SIGKILL");
    await this.#proxy.close();
  }

  /** From the action until its end, and what follows from it. */
  async measure(title: string, act: () => Promise<void>): Promise<Cost> {
    const before = { requests: this.#proxy.requests.length, ...(await this.#cpu()) };
    await act();
    await Bun.sleep(settleMs);
    const after = await this.#cpu();
    return {
      title,
      operatorMs: after.operatorMs - before.operatorMs,
      apiServerMs: after.apiServerMs - before.apiServerMs,
      requests: countRequests(this.#proxy.requests.slice(before.requests)),
    };
  }

  async #cpu(): Promise<{ readonly operatorMs: number; readonly apiServerMs: number }> {
    const [operatorMs, apiServerMs] = await Promise.all([cpuMs(this.#operator.pid), cpuMs(this.#stage.server.pid)]);
    return { operatorMs, apiServerMs };
  }

  async program(name: string, text: string): Promise<void> {
    const { apiVersion, kind } = programs;
    const program = { resources: { kept: { type: "pulumi:index:Stash", properties: { input: text } } } };
    const body = { apiVersion, kind, metadata: this.#ref(name), program: { ...program, outputs: { text } } };
    await this.#place.client.apply(programs, body, { fieldManager: "bench" });
  }

  async stack(name: string): Promise<void> {
    const { apiVersion, kind } = stacks;
    const literal = (value: string) => ({ type: "Literal", literal: { value } });
    const envRefs = {
      PULUMI_BACKEND_URL: literal(`file://${join(this.#folder, "backend")}`),
      PULUMI_CONFIG_PASSPHRASE: literal("passphrase"),
    };
    const spec = { stack: name, programRef: { name }, envRefs, destroyOnFinalize: true };
    await this.#place.client.create(stacks, { apiVersion, kind, metadata: this.#ref(name), spec });
  }

  async deleted(name: string): Promise<void> {
    const ref = this.#ref(name);
    await this.#place.client.delete(stacks, ref);
    await waitFor(() => this.#stacks.store.get(refKey(ref)) === undefined, {
      timeoutMs,
      what: `${name} to be deleted`,
    });
  }

  /** Until the Stack is ready with this output, and its Updates have no finalizer. */
  async succeeded(name: string, text: string): Promise<void> {
    const isReady = ({ status }: Stack): boolean =>
      status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") === true &&
      status.outputs?.["text"] === text;
    const isOver = (update: Update): boolean => isComplete(update) && !update.metadata.finalizers?.length;
    const hasSucceeded = (): boolean => {
      const stack = this.#stacks.store.get(refKey(this.#ref(name)));
      return stack !== undefined && isReady(stack) && this.#updates.store.list().every(isOver);
    };
    await waitFor(hasSucceeded, { timeoutMs, what: `${name} to succeed` });
  }

  #ref(name: string): { readonly name: string; readonly namespace: string } {
    return { name, namespace: this.#place.name };
  }
}

async function cpuMs(pid: number): Promise<number> {
  const stat = await Bun.file(`/proc/${pid}/stat`).text();
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function lifecycle(bed: Bed, name: string): Promise<Cost[]> {
  await bed.program(name, "one");
  await Bun.sleep(settleMs);
  return [
    await bed.measure("creation", async () => {
      await bed.stack(name);
      await bed.succeeded(name, "one");
    }),
    await bed.measure("change", async () => {
      await bed.program(name, "two");
      await bed.succeeded(name, "two");
    }),
    await bed.measure("deletion", () => bed.deleted(name)),
  ];
}

async function main(folder: string): Promise<void> {
  // As in the image: other than from a bundle, hardly any code is compiled while it runs, which takes less CPU time.
  await using stage = await setStage(await buildExecutables(folder));
  const place = await testNamespace({ server: stage.server });
  const account = await operatorAccount({
    admin: stage.server.credentials,
    home: place.name,
    namespaces: [place.name],
  });
  const proxy = await faultProxy(account.credentials);
  const bed = new Bed(stage, place, proxy);
  await using _kubelet = bed.kubelet();
  try {
    // The first one also warms up the operator.
    await lifecycle(bed, "first");
    const idle = async (): Promise<void> => await Bun.sleep(idleSeconds * 1000);
    const measured: Cost[][] = [];
    for (let round = 1; round <= rounds; round++) measured.push(await lifecycle(bed, `round-${round}`));
    const costs = averages(measured);
    if (idleSeconds > 0) costs.push(await bed.measure(`${idleSeconds} s idle`, idle));
    console.log(process.argv.includes("--json") ? JSON.stringify(costs, undefined, 2) : costTable(costs));
  } finally {
    await bed.stop();
    await account.remove();
    await place.remove();
  }
}

const folder = mkdtempSync(join(tmpdir(), "pko-cost-"));
try {
  await main(folder);
} finally {
  rmSync(folder, { recursive: true });
}
process.exit(0);
