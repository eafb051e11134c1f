/** The steps of docs/break-glass.md, docs/disaster-recovery.md and docs/upgrade.md, on a separate API server. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { leaseName, stackKind, suspendAnnotation, type Stack, type StackSpec } from "@pko/api";
import { builtin, logger, systemClock } from "@pko/kube";
import { stacks, updates, workspaces } from "@pko/operator";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { operator } from "../../../packages/operator/src/operator.ts";
import { parseOptions } from "../../../packages/operator/src/options.ts";
import { commandsIn } from "../../docs/commands.ts";
import { root } from "../../docs/pages.ts";
import { testTimeoutMs } from "../api/install.ts";
import { Operator } from "../harness/operator.ts";
import { gitServer, type GitServer } from "../stack/git-server.ts";
import { reasonOf, stackWiring } from "../stack/scene.ts";
import { Simulator } from "../stack/simulator.ts";
import { Shell } from "./shell.ts";

setDefaultTimeout(testTimeoutMs * 2);

const namespace = "team-a";
const operatorNamespace = "pulumi-kubernetes-operator";
const statusFile = "website-status.json";

let server: ApiServer;
let shell: Shell;
let git: GitServer;

beforeAll(async () => {
  server = await startApiServer();
  shell = new Shell(server);
  git = gitServer();
  git.commit();
  await run(recovered("The cluster or its API server is lost")[0] ?? "");
  await waitFor(async () => (await run("kubectl get stacks,updates,workspaces -A")) !== undefined, {
    timeoutMs: testTimeoutMs / 2,
    what: "the kinds to be served",
  });
  await run(`kubectl create namespace ${namespace}`);
}, testTimeoutMs * 2);

afterAll(async () => {
  await server.stop();
  shell[Symbol.dispose]();
  git[Symbol.dispose]();
  rmSync(join(root, statusFile), { force: true });
});

const run = (line: string): Promise<string> => shell.run(line);

/** The commands of a section. */
function commandsOf(page: string, heading: string): string[] {
  const text = readFileSync(join(root, "docs", page), "utf8");
  const [section = ""] = text.slice(text.indexOf(`\n## ${heading}\n`) + 1).split("\n## ", 1);
  const commands = commandsIn(section);
  expect(commands.length).toBeGreaterThan(0);
  return commands;
}
const recovered = (heading: string): string[] => commandsOf("disaster-recovery.md", heading);

/** A cluster with a Stack controller; a simulator replaces the other controllers. */
class Cluster implements AsyncDisposable {
  readonly simulator: Simulator;
  readonly #operator: Operator;

  constructor() {
    const { client } = server;
    this.simulator = new Simulator({ client, namespace, now: () => systemClock.now() });
    this.#operator = new Operator({ client, namespace }, stackWiring(namespace));
  }

  get runs(): string[] {
    return this.simulator.runs.map(({ type }) => type);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operator.stop();
    await this.simulator[Symbol.asyncDispose]();
  }
}

async function apply(name: string, more: Partial<StackSpec> = {}): Promise<void> {
  const spec: StackSpec = { stack: "dev", projectRepo: git.url, branch: "main", ...more };
  await server.client.create(stacks, { ...stackKind, metadata: { name, namespace }, spec });
}

const website = async (): Promise<Stack> => await server.client.get(stacks, { namespace, name: "website" });

async function becomes(what: string, is: (stack: Stack) => boolean): Promise<void> {
  const read = async (): Promise<boolean> => is(await website());
  await waitFor(read, { what: `Stack website to be ${what}`, timeoutMs: testTimeoutMs / 2 }).catch(
    async (error: unknown) => {
      throw new Error(JSON.stringify((await website()).status), { cause: error });
    },
  );
}

const isReady = ({ status, metadata }: Stack): boolean =>
  status?.observedGeneration === metadata.generation &&
  Boolean(status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True"));

async function deleteAll(): Promise<void> {
  await run("kubectl delete stacks,updates,workspaces --all --all-namespaces --wait=false");
  // This API server has no garbage collector.
  await run(`kubectl delete secrets --all -n ${namespace}`);
  const remaining = "kubectl get stacks,updates,workspaces --all-namespaces -o name";
  await waitFor(async () => (await run(remaining)) === "", { what: "everything to be deleted", timeoutMs: 45_000 });
}

test("a Stack moves to another cluster without an update, and follows new commits there", async () => {
  const commands = recovered("Move Stacks to another cluster without running anything");
  // A pipe separates commands.
  const [suspend = "", wait = "", save = "", ...there] = commands.filter((line) => !line.startsWith("tee "));
  {
    await using old = new Cluster();
    await apply("website", { destroyOnFinalize: true });
    await becomes("ready", isReady);
    for (const line of [suspend, wait]) await run(line);
    await run(`${save} | tee ${statusFile}`);
    await deleteAll();
    expect(old.runs).toEqual(["up"]);
  }
  await using moved = new Cluster();
  await apply("website", { destroyOnFinalize: true, suspend: true });
  for (const line of there) await run(line);
  await becomes("ready", isReady);
  expect(moved.runs).toEqual([]);

  const commit = git.commit();
  await run(`kubectl annotate stack website -n ${namespace} pulumi.com/reconciliation-request=next`);
  await becomes("at the next commit", ({ status }) => status?.lastUpdate?.lastSuccessfulCommit === commit);
  expect(moved.runs).toEqual(["up"]);
  await deleteAll();
});

test("a person takes over a Stack, and nothing runs until it is handed back", async () => {
  await using cluster = new Cluster();
  await apply("website");
  await becomes("ready", isReady);
  const commands = commandsOf("break-glass.md", "Take over a Stack by hand");
  const exec = commands.findIndex((line) => line.startsWith("kubectl exec"));
  for (const line of commands.slice(0, exec)) await run(line);
  const { metadata } = await server.client.get(workspaces, { namespace, name: "website" });
  expect(Date.parse(metadata.annotations?.["pulumi.com/wake-until"] ?? "")).toBeGreaterThan(Date.now());
  git.commit();
  await run(`kubectl annotate stack website -n ${namespace} pulumi.com/reconciliation-request=meanwhile`);
  await becomes("suspended", ({ status }) => status?.observedReconcileRequest === "meanwhile");
  expect(cluster.runs).toEqual(["up"]);
  for (const line of commands.slice(exec + 1)) await run(line);
  expect(cluster.runs).toEqual(["up", "up"]);

  for (const line of commandsOf("break-glass.md", "Give up a Stack without destroying anything")) await run(line);
  expect(await server.client.find(stacks, { namespace, name: "website" })).toBeUndefined();
  expect(cluster.runs).toEqual(["up", "up"]);
  await deleteAll();
});

test("after the loss of the backend, nothing runs until it is restored, and then with a refresh", async () => {
  await using cluster = new Cluster();
  await apply("website");
  await becomes("ready", isReady);
  const [suspend = "", resume = ""] = recovered("The backend is lost");
  await run(suspend);
  await becomes("suspended", (stack) => reasonOf(stack) === "Suspended");
  await run(resume);
  await becomes("ready", isReady);
  expect(cluster.simulator.runs.map(({ spec }) => spec.refresh ?? false)).toEqual([false, true]);
  await deleteAll();
});

/** Starts a real operator, which has a Lease. Returns a function that stops it. */
async function startOperator(): Promise<() => Promise<void>> {
  const flags = ["--leader-elect", `--namespace=${operatorNamespace}`, "--agent-image=none"];
  const addresses = ["--probe-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"];
  const options = parseOptions([...flags, ...addresses, "--allow-http", "--allow-addresses=127.0.0.1"], {});
  const log = logger({ level: "error", format: "json" });
  const manager = await operator({ options, credentials: server.credentials, log });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  const lease = { namespace: operatorNamespace, name: leaseName };
  const find = async () => (await server.client.find(builtin.leases, lease))?.spec?.holderIdentity;
  await waitFor(find, { what: "the Lease", timeoutMs: 45_000 });
  return async () => {
    stop.abort();
    await running;
  };
}

describe("with a running operator", () => {
  test("Stacks that are applied to a new cluster do not run before they are resumed", async () => {
    const [install = "", suspend = "", list = "", resume = ""] = recovered("The cluster or its API server is lost");
    await run(install);
    const stop = await startOperator();
    try {
      await run(suspend);
      await apply("website");
      await becomes("suspended", (stack) => reasonOf(stack) === "Suspended");
      expect(await run(list)).toContain("Suspended");
      expect((await server.client.list(updates)).items).toEqual([]);
      await run(resume);
      await becomes("processed", (stack) => reasonOf(stack) === "StackProcessing");
    } finally {
      await stop();
    }
  });

  test("one annotation stops everything, and its removal resumes it", async () => {
    const stop = await startOperator();
    try {
      const [suspend = "", list = "", ...others] = commandsOf("break-glass.md", "Stop everything");
      await run(suspend);
      await becomes("suspended", (stack) => reasonOf(stack) === "Suspended");
      expect(await run(list)).toContain("Suspended");
      for (const line of others) await run(line);
      await becomes("processed", (stack) => reasonOf(stack) === "StackProcessing");
      const lease = await server.client.get(builtin.leases, { namespace: operatorNamespace, name: leaseName });
      expect(lease.metadata.annotations?.[suspendAnnotation]).toBeUndefined();
    } finally {
      await stop();
    }
  });

  test("a new installation replaces a lost one, and keeps the Stacks", async () => {
    const { uid } = (await website()).metadata;
    await run(`helm uninstall -n ${operatorNamespace} pulumi-kubernetes-operator`);
    await run(`kubectl delete secrets,leases --all -n ${operatorNamespace}`);
    for (const line of recovered("The operator's namespace is lost")) await run(line);
    const stop = await startOperator();
    try {
      expect((await website()).metadata.uid).toBe(uid ?? "");
      const ca = { namespace: operatorNamespace, name: "pulumi-kubernetes-operator-ca" };
      await waitFor(async () => await server.client.find(builtin.secrets, ca), { what: "a new CA" });
    } finally {
      await stop();
    }
  });

  test("the commands of an upgrade and of a rollback work", async () => {
    const steps = ["Before", "Upgrade", "Verify", "Roll back"].flatMap((heading) => commandsOf("upgrade.md", heading));
    expect(steps.some((line) => line.startsWith("helm upgrade"))).toBe(true);
    // This API server has no controller that would create the pods.
    for (const line of steps.filter((each) => !each.startsWith("kubectl rollout"))) await run(line);
  });
});
