/** The steps of docs/break-glass.md, docs/disaster-recovery.md and docs/upgrade.md, on a separate API server. */
import { rmSync } from "node:fs";
import { join } from "node:path";

import { leaseName, stackKind, suspendAnnotation, type Stack, type StackSpec } from "@pko/api";
import { builtin, logger, systemClock } from "@pko/kube";
import { stacks, updates, workspaces } from "@pko/operator";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { operator } from "../../../packages/operator/src/operator.ts";
import { parseOptions } from "../../../packages/operator/src/options.ts";
import { root } from "../../docs/pages.ts";
import {
  needsPods,
  splitAt,
  stepName,
  stepStarting,
  stepPages,
  stepsOf,
  stepsOn,
  type Step,
} from "../../docs/steps.ts";
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

/** Of the pages. */
const executed = new Set<string>();

/** An API server on which the operator is installed, and the commands of the pages run. */
class Cluster implements AsyncDisposable {
  readonly server: ApiServer;
  readonly #shell: Shell;

  private constructor(server: ApiServer) {
    this.server = server;
    this.#shell = new Shell(server);
  }

  static async create(install: Step): Promise<Cluster> {
    const cluster = new Cluster(await startApiServer());
    await cluster.run(install);
    await waitFor(async () => (await cluster.run("kubectl get stacks,updates,workspaces -A")) !== undefined, {
      timeoutMs: testTimeoutMs / 2,
      what: "the kinds to be served",
    });
    await cluster.run(`kubectl create namespace ${namespace}`);
    return cluster;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop();
    this.#shell[Symbol.dispose]();
  }

  /** Runs a command, or several of a pipe. */
  async run(...commands: readonly (Step | string)[]): Promise<string> {
    const lines = commands.map((command) => (typeof command === "string" ? command : command.line));
    const output = await this.#shell.run(lines.join(" | "));
    for (const command of commands) if (typeof command !== "string") executed.add(stepName(command));
    return output;
  }

  async apply(name: string, more: Partial<StackSpec> = {}): Promise<void> {
    const spec: StackSpec = { stack: "dev", projectRepo: git.url, branch: "main", ...more };
    await this.server.client.create(stacks, { ...stackKind, metadata: { name, namespace }, spec });
  }

  async website(): Promise<Stack> {
    return await this.server.client.get(stacks, { namespace, name: "website" });
  }

  async becomes(what: string, is: (stack: Stack) => boolean): Promise<void> {
    const read = async (): Promise<boolean> => is(await this.website());
    await waitFor(read, { what: `Stack website to be ${what}`, timeoutMs: testTimeoutMs / 2 }).catch(
      async (error: unknown) => {
        throw new Error(JSON.stringify((await this.website()).status), { cause: error });
      },
    );
  }

  async deleteAll(): Promise<void> {
    await this.run("kubectl delete stacks,updates,workspaces --all --all-namespaces --wait=false");
    // This API server has no garbage collector.
    await this.run(`kubectl delete secrets --all -n ${namespace}`);
    const remaining = "kubectl get stacks,updates,workspaces --all-namespaces -o name";
    await waitFor(async () => (await this.run(remaining)) === "", {
      what: "everything to be deleted",
      timeoutMs: testTimeoutMs / 2,
    });
  }
}

/** A Stack controller of a cluster; a simulator replaces the other controllers. */
class Controllers implements AsyncDisposable {
  readonly simulator: Simulator;
  readonly #operator: Operator;

  constructor({ server: { client } }: Cluster) {
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

let cluster: Cluster;
let git: GitServer;

beforeAll(async () => {
  git = gitServer();
  git.commit();
  cluster = await Cluster.create(stepStarting(recovered("The cluster or its API server is lost"), "helm upgrade"));
}, testTimeoutMs * 2);

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  git[Symbol.dispose]();
  rmSync(join(root, statusFile), { force: true });
});

const run = (...commands: readonly (Step | string)[]): Promise<string> => cluster.run(...commands);

const recovered = (heading: string): Step[] => stepsOf("disaster-recovery.md", heading);

const isReady = ({ status, metadata }: Stack): boolean =>
  status?.observedGeneration === metadata.generation &&
  Boolean(status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True"));

test("a Stack moves to another cluster without an update, and follows new commits there", async () => {
  const [[suspend, wait, save], tee, steps] = splitAt(
    recovered("Move Stacks to another cluster without running anything"),
    "tee ",
  );
  const [copy, deleteOld, resume] = splitAt(steps, "kubectl delete ");
  if (!suspend || !wait || !save) throw new Error("the page does not suspend the Stack first");
  await using old = new Controllers(cluster);
  await cluster.apply("website", { destroyOnFinalize: true });
  await cluster.becomes("ready", isReady);
  for (const step of [suspend, wait]) await run(step);
  await run(save, tee);

  await using elsewhere = await Cluster.create(stepStarting(stepsOf("upgrade.md", "Upgrade"), "kubectl apply"));
  await using moved = new Controllers(elsewhere);
  await elsewhere.apply("website", { destroyOnFinalize: true, suspend: true });
  for (const step of copy) await elsewhere.run(step);
  await run(deleteOld);
  expect(old.runs).toEqual(["up"]);
  for (const step of resume) await elsewhere.run(step);
  await elsewhere.becomes("ready", isReady);
  expect(moved.runs).toEqual([]);

  const commit = git.commit();
  await elsewhere.run(`kubectl annotate stack website -n ${namespace} pulumi.com/reconciliation-request=next`);
  await elsewhere.becomes("at the next commit", ({ status }) => status?.lastUpdate?.lastSuccessfulCommit === commit);
  expect(moved.runs).toEqual(["up"]);
  await cluster.deleteAll();
});

test("a person takes over a Stack, and nothing runs until it is handed back", async () => {
  await using controllers = new Controllers(cluster);
  await cluster.apply("website");
  await cluster.becomes("ready", isReady);
  const [takeOver, , handBack] = splitAt(stepsOf("break-glass.md", "Take over a Stack by hand"), "kubectl exec");
  for (const step of takeOver) await run(step);
  const { metadata } = await cluster.server.client.get(workspaces, { namespace, name: "website" });
  expect(Date.parse(metadata.annotations?.["pulumi.com/wake-until"] ?? "")).toBeGreaterThan(Date.now());
  git.commit();
  await run(`kubectl annotate stack website -n ${namespace} pulumi.com/reconciliation-request=meanwhile`);
  await cluster.becomes("suspended", ({ status }) => status?.observedReconcileRequest === "meanwhile");
  expect(controllers.runs).toEqual(["up"]);
  for (const step of handBack.filter((each) => !needsPods(each))) await run(step);
  expect(controllers.runs).toEqual(["up", "up"]);

  for (const step of stepsOf("break-glass.md", "Give up a Stack without destroying anything")) await run(step);
  expect(await cluster.server.client.find(stacks, { namespace, name: "website" })).toBeUndefined();
  expect(controllers.runs).toEqual(["up", "up"]);
  await cluster.deleteAll();
});

test("after the loss of the backend, nothing runs until it is restored, and then with a refresh", async () => {
  await using controllers = new Controllers(cluster);
  await cluster.apply("website");
  await cluster.becomes("ready", isReady);
  const [suspend, resume] = recovered("The backend is lost");
  await run(suspend ?? "");
  await cluster.becomes("suspended", (stack) => reasonOf(stack) === "Suspended");
  await run(resume ?? "");
  await cluster.becomes("ready", isReady);
  expect(controllers.simulator.runs.map(({ spec }) => spec.refresh ?? false)).toEqual([false, true]);
  await cluster.deleteAll();
});

/** Starts a real operator, which has a Lease. Returns a function that stops it. */
async function startOperator(): Promise<() => Promise<void>> {
  const flags = ["--leader-elect", `--namespace=${operatorNamespace}`, "--agent-image=none"];
  const addresses = ["--probe-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"];
  const options = parseOptions([...flags, ...addresses, "--allow-http", "--allow-addresses=127.0.0.1"], {});
  const log = logger({ level: "error", format: "json" });
  const manager = await operator({ options, credentials: cluster.server.credentials, log });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  const lease = { namespace: operatorNamespace, name: leaseName };
  const find = async () => (await cluster.server.client.find(builtin.leases, lease))?.spec?.holderIdentity;
  await waitFor(find, { what: "the Lease", timeoutMs: testTimeoutMs / 2 });
  return async () => {
    stop.abort();
    await running;
  };
}

describe("with a running operator", () => {
  test("Stacks that are applied to a new cluster do not run before they are resumed", async () => {
    const [install = "", ready = "", suspend = "", list = "", resume = ""] = recovered(
      "The cluster or its API server is lost",
    );
    await run(install);
    // The Lease does not exist until the operator has started, which takes as long as pulling its image.
    const whenReady = run(ready);
    const stop = await startOperator();
    await whenReady;
    try {
      await run(suspend);
      await cluster.apply("website");
      await cluster.becomes("suspended", (stack) => reasonOf(stack) === "Suspended");
      expect(await run(list)).toContain("Suspended");
      expect((await cluster.server.client.list(updates)).items).toEqual([]);
      await run(resume);
      await cluster.becomes("processed", (stack) => reasonOf(stack) === "StackProcessing");
    } finally {
      await stop();
    }
  });

  test("one annotation stops everything, and its removal resumes it", async () => {
    const stop = await startOperator();
    try {
      const [suspend = "", list = "", ...others] = stepsOf("break-glass.md", "Stop everything");
      await run(suspend);
      await cluster.becomes("suspended", (stack) => reasonOf(stack) === "Suspended");
      expect(await run(list)).toContain("Suspended");
      for (const step of others) await run(step);
      await cluster.becomes("processed", (stack) => reasonOf(stack) === "StackProcessing");
      const lease = await cluster.server.client.get(builtin.leases, { namespace: operatorNamespace, name: leaseName });
      expect(lease.metadata.annotations?.[suspendAnnotation]).toBeUndefined();
    } finally {
      await stop();
    }
  });

  test("a new installation replaces a lost one, and keeps the Stacks", async () => {
    const { uid } = (await cluster.website()).metadata;
    await run(`helm uninstall -n ${operatorNamespace} pulumi-kubernetes-operator`);
    await run(`kubectl delete secrets,leases --all -n ${operatorNamespace}`);
    for (const step of recovered("The operator's namespace is lost")) await run(step);
    const stop = await startOperator();
    try {
      expect((await cluster.website()).metadata.uid).toBe(uid ?? "");
      const ca = { namespace: operatorNamespace, name: "pulumi-kubernetes-operator-ca" };
      await waitFor(async () => await cluster.server.client.find(builtin.secrets, ca), { what: "a new CA" });
    } finally {
      await stop();
    }
  });

  test("the commands of an upgrade and of a rollback work", async () => {
    const steps = ["Before", "Upgrade", "Verify", "Roll back"].flatMap((heading) => stepsOf("upgrade.md", heading));
    expect(steps.some(({ line }) => line.startsWith("helm upgrade"))).toBe(true);
    for (const step of steps.filter((each) => !needsPods(each))) await run(step);
  });
});

test("every command of the pages was executed, except those that need pods", () => {
  const steps = stepPages.flatMap(stepsOn).filter((step) => !needsPods(step));
  expect(steps.length).toBeGreaterThan(30);
  expect(steps.map(stepName).filter((name) => !executed.has(name))).toEqual([]);
});
