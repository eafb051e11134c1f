/**
 * An installation of the chart with real operators, agents and CLI on a real control plane: an API server behind a proxy,
 * a scheduler, and the controllers of Deployments, StatefulSets and nodes. A Prometheus scrapes the operators. Only the
 * kubelets are fake. Namespaces and releases have the names of the runbooks, so their commands run unchanged.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { caSecretName } from "@pko/api";
import { toolPath } from "@pko/cluster";
import { builtin, staticCredentials, type Client } from "@pko/kube";
import { createAuthorities } from "@pko/rpc/pki";
import {
  faultProxy,
  serviceAccountToken,
  spawnChild,
  startApiServer,
  type ApiServer,
  type FaultProxy,
} from "@pko/testkit";

import { commandsIn } from "../../docs/commands.ts";
import { readRunbook, type RunbookSection } from "../../docs/runbook.ts";
import { CountingCli } from "../../faults/counting-cli.ts";
import { FakeKubelet } from "../../faults/fake-kubelet.ts";
import { Observer } from "../../faults/observer.ts";
import { Shop } from "../../faults/shop.ts";
import { bundledPrograms, startControllers } from "../../faults/stage.ts";
import { Shell } from "../docs/shell.ts";
import { FakeNodes } from "./fake-nodes.ts";
import { OperatorKubelet } from "./operator-kubelet.ts";
import { Prometheus } from "./prometheus.ts";
import { release } from "./promtool.ts";
import { deleteTranscripts, transcribe, unprintedLines } from "./transcripts.ts";

const namespace = "team-a";
export const [homeNode, lostNode] = ["worker-1", "worker-2"] as const;

const controllers = [
  "statefulset-controller",
  "garbage-collector-controller",
  "deployment-controller",
  "replicaset-controller",
  "node-lifecycle-controller",
  "taint-eviction-controller",
  "pod-garbage-collector-controller",
];

/** Durations of seconds instead of minutes, and no admission policies: their alert is the first. */
const values = {
  admissionPolicy: { enabled: false },
  controller: { metricsSecure: false, referenceCheckInterval: "1s", maxConcurrentUpdatesPerNamespace: 2 },
  git: { allowHttp: true },
  workspace: { lostNodeAfter: "1s" },
  // On a busy machine, the operator must not end because it cannot renew its Lease.
  leaderElection: { leaseDuration: "60s", renewDeadline: "50s", retryPeriod: "500ms" },
};

/** A retry is due after ten seconds. */
const rereadingMs = 30_000;

interface Trouble {
  readonly stack?: string;
  /** What the alert is about, if it is not a Stack. */
  readonly subject?: string;
  /** Called before the last command that fixes it. */
  readonly removeCause?: () => void;
}

type FollowedTrouble = Trouble & { readonly stack: string };

export class AlertStage implements AsyncDisposable {
  readonly server: ApiServer;
  readonly prometheus: Prometheus;
  /** The alerts that have fired and were resolved. */
  readonly resolved = new Set<string>();
  readonly folder = mkdtempSync(join(tmpdir(), "pko-alerts-"));
  readonly #parts = new AsyncDisposableStack();
  readonly #clockFile = join(this.folder, "wrong-clock");
  readonly #shell: Shell;
  #shop: Shop | undefined;
  #nodes: FakeNodes | undefined;
  #kubelet: FakeKubelet | undefined;
  #proxy: FaultProxy | undefined;

  private constructor(server: ApiServer, prometheus: Prometheus) {
    this.server = server;
    this.prometheus = prometheus;
    this.#shell = new Shell(server);
    this.#parts.defer(() => rmSync(this.folder, { recursive: true, force: true }));
    this.#parts.defer(() => server.stop());
    this.#parts.use(this.#shell);
    this.#parts.use(prometheus);
  }

  static async open(): Promise<AlertStage> {
    const opened = new AlertStage(await startApiServer(), await Prometheus.start());
    try {
      await opened.#start();
    } catch (error) {
      await opened[Symbol.asyncDispose]();
      throw error;
    }
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
    const faults = this.#kubelet?.faults ?? [];
    if (faults.length > 0) throw new AggregateError(faults, "the fake kubelet failed");
  }

  async #start(): Promise<void> {
    deleteTranscripts();
    this.#startControlPlane();
    await this.#install();
    const programs = bundledPrograms();
    await this.#startWorkspaces(programs.agent);
    await this.#startOperators(programs.operator);
  }

  get client(): Client {
    return this.server.client;
  }

  get shop(): Shop {
    return present(this.#shop);
  }

  get nodes(): FakeNodes {
    return present(this.#nodes);
  }

  get proxy(): FaultProxy {
    return present(this.#proxy);
  }

  /** What a command prints. */
  async run(command: string): Promise<string> {
    return await this.#shell.run(command);
  }

  /** Waits until the alert fires, follows its runbook, and waits until it is resolved. */
  async resolve(alert: string, { stack = "website", subject = stack, removeCause }: Trouble = {}): Promise<void> {
    await this.prometheus.untilFiring(alert, subject);
    await this.#read(alert, "Find the cause", stack);
    await this.#follow(alert, "Fix", { stack, ...(removeCause && { removeCause }) });
    await this.prometheus.untilResolved(alert, subject);
    await this.#read(alert, "Verify", stack);
    this.resolved.add(alert);
  }

  /** Repeats the commands, which only read, until they have printed what the page shows: the state may be another at first. */
  async #read(alert: string, section: RunbookSection, stack: string): Promise<void> {
    const end = performance.now() + rereadingMs;
    do {
      await this.#follow(alert, section, { stack });
    } while (unprintedLines(alert, section).length > 0 && performance.now() < end);
  }

  async #follow(alert: string, section: RunbookSection, { stack, removeCause }: FollowedTrouble): Promise<void> {
    const commands = commandsIn(readRunbook(alert)[section]);
    for (const [index, line] of commands.entries()) {
      if (index === commands.length - 1) removeCause?.();
      // A terminal also shows what kubectl writes to standard error, such as "No resources found".
      const output = await this.run(`${ownCommand(line, stack)} 2>&1`);
      const shown = output.replaceAll(this.folder, "/app").replaceAll(stack, "website");
      transcribe(alert, { section, command: line, output: shown });
    }
  }

  /** Like a power failure. */
  async loseNode(name: string): Promise<void> {
    this.nodes.lose(name);
    await present(this.#kubelet).powerOff(name);
  }

  /** The agent of a workspace does not respond any more, but its processes run. */
  freezeAgent(workspace: string): void {
    const pid = present(this.#kubelet).agentPid(workspace);
    if (pid === undefined) throw new Error(`there is no agent of Workspace ${workspace}`);
    process.kill(pid, "SIGSTOP");
  }

  correctClock(): void {
    rmSync(this.#clockFile);
  }

  #startControlPlane(): void {
    const flags = ["--node-monitor-period=1s", "--node-monitor-grace-period=15s"];
    const manager = startControllers(this.server, this.folder, { controllers, flags });
    const scheduler = join(this.folder, "kube-scheduler");
    symlinkSync(toolPath("kube"), scheduler);
    const scheduling = spawnChild({
      command: [scheduler, `--kubeconfig=${this.server.kubeconfig}`, "--leader-elect=false", "--secure-port=0"],
      logFile: join(this.folder, "scheduler.log"),
    });
    for (const child of [manager, scheduling]) this.#parts.defer(() => child.stop("SIGKILL"));
  }

  /** With a CA that expires in five days, because the clock of the operator's node has been slow. */
  async #install(): Promise<void> {
    writeFileSync(this.#clockFile, "");
    for (const name of [namespace, release]) await this.run(`kubectl create namespace ${name}`);
    const authorities = await createAuthorities(new Date(Date.now() - 360 * 86_400_000));
    await this.client.create(builtin.secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace: release, name: caSecretName },
      stringData: { "authorities.json": JSON.stringify(authorities) },
    });
    const file = join(this.folder, "values.yaml");
    writeFileSync(file, JSON.stringify(values));
    await this.run(`helm install -n ${release} ${release} charts/${release} --values ${file}`);
  }

  async #startWorkspaces(agent: readonly string[]): Promise<void> {
    const { client, folder } = this;
    for (const each of ["backend", "git"]) mkdirSync(join(folder, each), { recursive: true });
    const own = { client, namespace, folder };
    const logFile = (home: string, pod: string): string | undefined =>
      home === release ? join(folder, `${pod}.log`) : this.#kubelet?.logFile(pod);
    const nodes = await FakeNodes.open({ client, names: [homeNode, lostNode], logFile });
    const kubelet = new FakeKubelet({
      ...own,
      home: release,
      agent,
      nodes,
      pulumi: new CountingCli(folder, "quick-pulumi").path,
      arrive: () => undefined,
      crash: () => Promise.resolve(),
    });
    const observer = new Observer({ ...own, commits: [] });
    const shop = new Shop({ ...own, observer, commits: [] });
    this.#parts.use(nodes);
    this.#parts.use(observer);
    this.#parts.defer(() => shop.stop());
    this.#parts.use(kubelet);
    await observer.synced;
    [this.#nodes, this.#kubelet, this.#shop] = [nodes, kubelet, shop];
  }

  async #startOperators([bun = "", program = ""]: readonly string[]): Promise<void> {
    const { client, folder } = this;
    const token = await serviceAccountToken(client, { namespace: release, name: release }, 86_400);
    const { ca = "" } = (await this.server.credentials.access()).tls;
    const proxy = await faultProxy(staticCredentials({ server: this.server.url, token, tls: { ca } }));
    this.#proxy = proxy;
    this.#parts.use(proxy);
    const kubeconfig = join(folder, "operator.kubeconfig");
    writeFileSync(kubeconfig, proxy.kubeconfig);
    const operators = new OperatorKubelet({
      client,
      namespace: release,
      folder,
      command: [bun, "--preload", join(import.meta.dir, "wrong-clock.ts"), program],
      env: { WRONG_CLOCK: this.#clockFile },
      flags: [`--kubeconfig=${kubeconfig}`, "--allow-addresses=127.0.0.1", "--min-resync=1s"],
      onTargets: (targets) => this.prometheus.setTargets(targets),
    });
    this.#parts.use(operators);
  }
}

function present<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("the stage is not open");
  return part;
}

function ownCommand(line: string, stack: string): string {
  return (
    line
      .replaceAll("website", stack)
      .replace(/ --timeout=\d+m/, " --timeout=240s")
      // There is no terminal for the confirmation.
      .replace(/^kubectl pulumi approve .*$/, "$& --yes")
  );
}
