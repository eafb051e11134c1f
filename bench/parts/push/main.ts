/**
 * One push to a monorepo that affects many Stacks, with the limits that the chart ships. `bun bench/parts/push/main.ts
 * [--stacks=30]` prints figures, with `--json` as JSON. It needs no cluster: the API server, the StatefulSet controller, the
 * operator, the CLI and the Git server are real, and agents are processes.
 *
 * The Stacks are in four namespaces, so that they could use all slots of the operator. A Stack in a fifth one is updated again and
 * again, before the push and while the others are updated.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { createRepository, serveGit } from "@pko/agent/testing";
import { isComplete, reconcileRequestAnnotation, type Stack, type Update, type Workspace } from "@pko/api";
import { builtin, keyOf, reflector, type Key, type Reflector } from "@pko/kube";
import { programs, stacks, updates, workspaces } from "@pko/operator";
import { spawnChild, testNamespace, waitFor, type ChildProcess, type TestNamespace } from "@pko/testkit";

import { CountingCli } from "../../../test/faults/counting-cli.ts";
import { FakeKubelet } from "../../../test/faults/fake-kubelet.ts";
import { setStage, type Stage } from "../../../test/faults/stage.ts";
import { operatorAccount } from "../../../test/rights/account.ts";
import { SlotWatch, type PushFigures } from "./occupancy.ts";

const count = Number(/--stacks=(\d+)/.exec(process.argv.join(" "))?.[1] ?? 30);
const crowdNamespaces = 4;
const quietVisits = 5;
/** For all Stacks together; the machine may be slow. */
const timeoutMs = 120_000 + count * 10_000;
/** Pods are gone soon after each update, as they are ten minutes after it by default. */
const idleTimeoutSeconds = 1;
const lone = "lone";

interface Place {
  readonly namespace: TestNamespace;
  readonly folder: string;
}

class Bed {
  readonly #stage: Stage;
  readonly #crowd: readonly Place[];
  readonly #tenant: Place;
  readonly #stacks: Reflector<Stack>;
  readonly #updates: Reflector<Update>;
  readonly #workspaces: Reflector<Workspace>;
  readonly #end = new AbortController();
  readonly #operator: ChildProcess;

  constructor(stage: Stage, places: readonly Place[], kubeconfig: string) {
    const [tenant, ...crowd] = places;
    if (!tenant) throw new Error("no namespace");
    this.#stage = stage;
    this.#tenant = tenant;
    this.#crowd = crowd;
    const { client, name } = tenant.namespace;
    const namespaces = places.map(({ namespace }) => namespace.name);
    this.#stacks = reflector(client, stacks, { namespaces });
    this.#updates = reflector(client, updates, { namespaces });
    this.#workspaces = reflector(client, workspaces, { namespaces });
    for (const each of [this.#stacks, this.#updates, this.#workspaces]) void each.run(this.#end.signal);
    const file = join(tenant.folder, "kubeconfig");
    writeFileSync(file, kubeconfig);
    // Without flags for limits, they are those of the chart.
    const flags = {
      kubeconfig: file,
      namespace: name,
      "watch-namespaces": namespaces.join(","),
      "agent-image": "agent:1",
      "pod-name": "operator",
      "probe-address": "127.0.0.1:0",
      "metrics-address": "127.0.0.1:0",
      "allow-addresses": "127.0.0.1",
    };
    const given = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    const command = [...stage.programs.operator, ...given, "--allow-http"];
    this.#operator = spawnChild({ command, logFile: join(tenant.folder, "operator.log") });
  }

  kubelets(): FakeKubelet[] {
    return [this.#tenant, ...this.#crowd].map(
      ({ namespace, folder }) =>
        new FakeKubelet({
          client: namespace.client,
          namespace: namespace.name,
          home: this.#tenant.namespace.name,
          folder,
          agent: this.#stage.programs.agent,
          pulumi: new CountingCli(folder, "pulumi").path,
          arrive: () => undefined,
          crash: () => Promise.resolve(),
        }),
    );
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#operator.stop("SIGKILL");
  }

  async createLone(): Promise<void> {
    const { client, name: namespace } = this.#tenant.namespace;
    const { apiVersion, kind } = programs;
    const program = { outputs: { text: "lone" } };
    const body = { apiVersion, kind, metadata: { name: lone, namespace }, program };
    await client.apply(programs, body, { fieldManager: "bench" });
    await this.#create(this.#tenant, lone, { programRef: { name: lone } });
    await this.#until("the lone Stack to be ready", () => this.#isReady(this.#stacks.store.get(this.#loneKey)));
  }

  /** Returns when all have deployed the commit. */
  async createCrowd(url: string, commit: string): Promise<void> {
    for (let index = 0; index < count; index++) {
      const place = this.#crowd[index % this.#crowd.length];
      const repoDir = folderOf(index);
      const pathFilters = [`${repoDir}/**`, "shared/**"];
      if (!place) continue;
      const podTemplate = { spec: withVolume(join(place.folder, "backend")) };
      const workspaceTemplate = { spec: { idleTimeoutSeconds, podTemplate } };
      const source = { projectRepo: url, branch: "main", repoDir, pathFilters, workspaceTemplate };
      await this.#create(place, `web-${index}`, source);
    }
    await this.#until("all Stacks to be deployed", () => this.deployed(commit) === count);
    await this.#until("their pods to be gone", async () => (await this.#countPods()) === 0);
  }

  async #countPods(): Promise<number> {
    const lists = this.#crowd.map(({ namespace: { client, name } }) => client.list(builtin.pods, { namespace: name }));
    return (await Promise.all(lists)).flatMap(({ items }) => items).length;
  }

  async #create({ namespace, folder }: Place, name: string, source: object): Promise<void> {
    const { apiVersion, kind } = stacks;
    const literal = (value: string) => ({ type: "Literal", literal: { value } });
    const envRefs = {
      PULUMI_BACKEND_URL: literal(`file://${join(folder, "backend")}`),
      PULUMI_CONFIG_PASSPHRASE: literal("passphrase"),
    };
    const metadata = { name, namespace: namespace.name };
    const body = { apiVersion, kind, metadata, spec: { stack: name, envRefs, ...source } };
    // Unlike a creation, it is repeated if a busy API server does not respond in time.
    await namespace.client.apply(stacks, body, { fieldManager: "bench" });
  }

  deployed(commit: string): number {
    return this.#stacks.store.list().filter((stack) => stack.status?.lastUpdate?.lastSuccessfulCommit === commit)
      .length;
  }

  #isReady = (stack: Stack | undefined): boolean =>
    stack?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;

  get #loneKey(): Key {
    return `${this.#tenant.namespace.name}/${lone}`;
  }

  /** Requests an update of the lone Stack. Returns the time until it was created. */
  async visit(request: string): Promise<number> {
    const { client, name: namespace } = this.#tenant.namespace;
    const known = new Set(this.#loneUpdates().map(keyOf));
    const begin = performance.now();
    const { promise: created, resolve } = Promise.withResolvers<number>();
    const unsubscribe = this.#updates.store.subscribe(({ key, after }) => {
      if (after?.metadata.namespace === namespace && !known.has(key)) resolve(performance.now() - begin);
    });
    const body = { metadata: { annotations: { [reconcileRequestAnnotation]: request } } };
    await client.patch(stacks, { namespace, name: lone }, { patch: { type: "merge", body } });
    const waited = await created;
    unsubscribe();
    const hasEnded = (): boolean =>
      this.#isReady(this.#stacks.store.get(this.#loneKey)) && this.#loneUpdates().every(isComplete);
    await this.#until("the lone Stack to be updated", hasEnded);
    return waited;
  }

  #loneUpdates(): Update[] {
    return this.#updates.store.list().filter(({ metadata }) => metadata.namespace === this.#tenant.namespace.name);
  }

  /** Which Stacks hold a slot: from when their Workspace gets the commit until their Update has ended. */
  watchSlots(commit: string): SlotWatch {
    const watch = new SlotWatch();
    this.#workspaces.store.subscribe(({ key, after }) => {
      if (after?.spec?.git?.ref === commit) watch.start(key, performance.now());
    });
    this.#updates.store.subscribe(({ after }) => {
      if (!after || !isComplete(after)) return;
      watch.end(`${after.metadata.namespace}/${after.spec?.workspaceName ?? ""}`, performance.now());
    });
    return watch;
  }

  async #until(what: string, is: () => boolean | Promise<boolean>): Promise<void> {
    await waitFor(is, { timeoutMs, what });
  }
}

/** The operator keeps the pod of a workspace whose state is on no volume. Agents are processes, so nothing is mounted. */
const withVolume = (mountPath: string): object => ({
  containers: [{ name: "pulumi", volumeMounts: [{ name: "state", mountPath }] }],
  volumes: [{ name: "state", persistentVolumeClaim: { claimName: "state" } }],
});

const folderOf = (index: number): string => `stacks/web-${index}`;

const monorepo = (shared: string): Record<string, string> => ({
  "shared/text": shared,
  ...Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      `${folderOf(index)}/Pulumi.yaml`,
      JSON.stringify({ name: "web", runtime: "yaml", outputs: { index } }),
    ]),
  ),
});

async function measure(bed: Bed, root: string): Promise<PushFigures> {
  const repository = createRepository(root, "monorepo");
  repository.git("config", "uploadpack.allowFilter", "true");
  const server = serveGit(root);
  try {
    await bed.createLone();
    await bed.createCrowd(`http://127.0.0.1:${server.port}/monorepo.git`, repository.commit(monorepo("one")));
    const quietMs: number[] = [];
    for (let visit = 0; visit < quietVisits; visit++) quietMs.push(await bed.visit(`quiet-${visit}`));
    const pushed = repository.commit(monorepo("two"));
    const watch = bed.watchSlots(pushed);
    await waitFor(() => watch.result.most > 0, { timeoutMs, what: "the push to be noticed" });
    const begin = performance.now();
    const crowdedMs: number[] = [];
    while (bed.deployed(pushed) < count && performance.now() - begin < timeoutMs) {
      crowdedMs.push(await bed.visit(`crowded-${crowdedMs.length}`));
    }
    const durationMs = performance.now() - begin;
    return { stacks: count, deployed: bed.deployed(pushed), durationMs, quietMs, crowdedMs, ...watch.result };
  } finally {
    await server.stop();
  }
}

async function main(): Promise<void> {
  await using stage = await setStage();
  const places: Place[] = [];
  for (let index = 0; index <= crowdNamespaces; index++) {
    const namespace = await testNamespace({ server: stage.server });
    const folder = join(stage.folder, namespace.name);
    mkdirSync(join(folder, "backend"), { recursive: true });
    places.push({ namespace, folder });
  }
  const namespaces = places.map(({ namespace }) => namespace.name);
  const home = namespaces[0] ?? "";
  const account = await operatorAccount({ admin: stage.server.credentials, home, namespaces });
  const bed = new Bed(stage, places, account.kubeconfig);
  const kubelets = bed.kubelets();
  try {
    const figures = await measure(bed, join(stage.folder, "git"));
    console.log(process.argv.includes("--json") ? JSON.stringify(figures) : table(figures));
  } finally {
    await bed.stop();
    for (const kubelet of kubelets) await kubelet[Symbol.asyncDispose]();
    await account.remove();
    for (const { namespace } of places) await namespace.remove();
  }
}

function table({ stacks: all, deployed, durationMs, most, mostInNamespace, heldMs, quietMs, crowdedMs }: PushFigures) {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
  const range = (values: readonly number[]): string => {
    const sorted = values.toSorted((a, b) => a - b);
    return `median ${seconds(sorted[Math.floor(sorted.length / 2)] ?? 0)}, longest ${seconds(sorted.at(-1) ?? 0)}`;
  };
  return [
    `deployed:                  ${deployed} of ${all}, in ${seconds(durationMs)}`,
    `slots in use:              at most ${most}, ${mostInNamespace} in one namespace`,
    `a slot is held for:        ${range(heldMs)}`,
    `another tenant, before:    ${range(quietMs)} until its Update is created`,
    `another tenant, meanwhile: ${range(crowdedMs)} (${crowdedMs.length} updates)`,
  ].join("\n");
}

await main();
process.exit(0);
