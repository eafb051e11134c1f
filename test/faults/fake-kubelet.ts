/** A fake kubelet for one namespace: each workspace pod is a real agent process. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { caSecretName, pulumiContainer } from "@pko/api";
import { readyPort } from "@pko/agent/testing";
import { goProgramEnv, toolPath } from "@pko/cluster";
import { builtin, isNotFound, keyOf, refKey, reflector, type Client, type Key, type ApiObject } from "@pko/kube";
import type { StartRequest } from "@pko/rpc";
import { issueOperatorCertificate, type Authorities, type Certificate } from "@pko/rpc/pki";
import { spawnChild, waitFor, type ChildProcess } from "@pko/testkit";
import type { Container, Pod, Secret } from "kubernetes-types/core/v1";

import type { Where } from "./fuse.ts";
import { rpcProxy, type RpcProxy } from "./rpc-proxy.ts";

const agentPort = 50_051;
const agentLog = "agent.log";
const timeoutMs = 60_000;

interface KubeletOptions {
  readonly client: Client;
  readonly namespace: string;
  /** The operator's namespace; by default, the same. */
  readonly home?: string;
  readonly folder: string;
  /** The command that starts an agent, without its flags. */
  readonly agent: readonly string[];
  /** The path of the agents' Pulumi CLI. */
  readonly pulumi: string;
  /** If a scheduler assigns pods to nodes. Otherwise, every pod starts. */
  readonly nodes?: { isLost(name: string): boolean };
  /** Called for each call of the operator. */
  readonly arrive: (method: string, workspace: string) => Where | undefined;
  /** Crashes the operator. */
  readonly crash: () => Promise<void>;
}

interface RunningPod {
  readonly uid: string;
  readonly node: string | undefined;
  readonly folder: string;
  readonly agent: ChildProcess;
  readonly proxy: RpcProxy;
}

/** Every pod has its own loopback address, and so has every process: two runs on one machine must not share any. */
let addresses = 0;
function nextAddress(): string {
  addresses += 1;
  const ofProcess = 2 + (process.pid % 250);
  return `127.${ofProcess}.${Math.floor(addresses / 250)}.${1 + (addresses % 250)}`;
}

export class FakeKubelet implements AsyncDisposable {
  readonly #options: KubeletOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #pods = new Map<Key, RunningPod>();
  /** Changes of each pod name are processed one after another. */
  readonly #work = new Map<Key, Promise<void>>();
  readonly #wanted = new Map<Key, ApiObject<Pod> | undefined>();
  readonly faults: unknown[] = [];
  /** The digest of the plan that each run applies, by run. Agents keep a plan only until its run ends. */
  readonly appliedPlans = new Map<string, string>();

  constructor(options: KubeletOptions) {
    this.#options = options;
    const pods = reflector(options.client, builtin.pods, { namespaces: [options.namespace] });
    pods.store.subscribe(({ key, after }) => this.#onPod(key, after));
    this.#running = pods.run(this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await Promise.all(this.#work.values());
    await Promise.all([...this.#pods.keys()].map((key) => this.#stopPod(key)));
  }

  /** The process of a workspace's agent, while its pod runs. */
  agentPid(workspace: string): number | undefined {
    return this.#runningPod(`${workspace}-workspace-0`)?.agent.pid;
  }

  /** The log of a pod that runs. */
  logFile(pod: string): string | undefined {
    const folder = this.#runningPod(pod)?.folder;
    return folder && join(folder, agentLog);
  }

  #runningPod(name: string): RunningPod | undefined {
    return this.#pods.get(refKey({ namespace: this.#options.namespace, name }));
  }

  /** Like a power failure. `isLost` must be true for the node from now on. */
  async powerOff(node: string): Promise<void> {
    for (const [key, pod] of [...this.#pods].filter(([, pod]) => pod.node === node)) {
      await this.#stopPod(key, "SIGKILL");
      await killProcesses(pod.folder);
    }
  }

  #onPod(key: Key, pod: ApiObject<Pod> | undefined): void {
    this.#wanted.set(key, pod);
    const before = this.#work.get(key) ?? Promise.resolve();
    const next = before
      .then(() => this.#settle(key))
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted && !isNotFound(error)) this.faults.push(error);
      });
    this.#work.set(key, next);
  }

  async #settle(key: Key): Promise<void> {
    const present = this.#wanted.get(key);
    const pod = present?.metadata.deletionTimestamp ? undefined : present;
    const known = this.#pods.get(key);
    if (this.#isOnLostNode(present)) return;
    if (known && known.uid !== pod?.metadata.uid) await this.#stopPod(key);
    if (present && !pod) await this.#confirmEnd(present, known?.folder);
    if (pod && this.#mayStart(pod) && !this.#pods.has(key)) await this.#startPod(pod);
  }

  #isOnLostNode(pod: ApiObject<Pod> | undefined): boolean {
    const node = pod?.spec?.nodeName;
    return node !== undefined && this.#options.nodes?.isLost(node) === true;
  }

  #mayStart({ spec }: ApiObject<Pod>): boolean {
    return !this.#stop.signal.aborted && (!this.#options.nodes || spec?.nodeName !== undefined);
  }

  /** The API server keeps a pod that has a node until the kubelet has stopped it. */
  async #confirmEnd({ metadata, spec }: ApiObject<Pod>, folder: string | undefined): Promise<void> {
    const { namespace = "", name = "", uid = "" } = metadata;
    if (spec?.nodeName === undefined) return;
    if (folder !== undefined) await killProcesses(folder);
    await this.#options.client.delete(builtin.pods, { namespace, name }, { uid, gracePeriodSeconds: 0 });
  }

  async #startPod(pod: ApiObject<Pod>): Promise<void> {
    const { name = "", uid = "" } = pod.metadata;
    const { namespace } = this.#options;
    const workspace = { namespace, name: name.replace(/-workspace-0$/, "") };
    const container = pod.spec?.containers.find((each) => each.name === pulumiContainer);
    if (!container) return;
    const folder = join(this.#options.folder, `pod-${uid}`);
    const certificate = await this.#agentCertificate(`${workspace.name}-workspace-tls`);
    const ip = nextAddress();
    const { agent, port } = await this.#startAgent(container, { folder, certificate });
    const proxy = await rpcProxy({
      workspace,
      hostname: ip,
      port: agentPort,
      agentPort: port,
      agent: certificate,
      operator: await this.#operatorCertificate(),
      arrive: (method) => this.#options.arrive(method, workspace.name),
      onForward: (method, body) => this.#onForward(method, body),
      crash: this.#options.crash,
    });
    this.#pods.set(keyOf(pod), { uid, node: pod.spec?.nodeName, folder, agent, proxy });
    const status = runningStatus(container.image ?? "", ip);
    const patch = { type: "merge", body: { metadata: { uid }, status } } as const;
    await this.#options.client.patch(builtin.pods, { namespace, name }, { patch, subresource: "status" });
  }

  /** An agent starts a run only once. */
  #onForward(method: string, body: string): void {
    if (method !== "start") return;
    const { runId, operation } = JSON.parse(body) as StartRequest;
    const digest = "applyPlan" in operation ? operation.applyPlan?.digest : undefined;
    if (digest !== undefined && !this.appliedPlans.has(runId)) this.appliedPlans.set(runId, digest);
  }

  async #startAgent(
    container: Container,
    { folder, certificate }: { readonly folder: string; readonly certificate: Certificate },
  ): Promise<{ agent: ChildProcess; port: number }> {
    const tls = join(folder, "tls");
    const home = join(folder, "home");
    for (const each of [tls, home]) mkdirSync(each, { recursive: true });
    writeFileSync(join(tls, "ca.crt"), certificate.ca);
    writeFileSync(join(tls, "tls.crt"), certificate.cert);
    writeFileSync(join(tls, "tls.key"), certificate.key);
    const tools = (["pulumi", "pulumi-language-yaml"] as const).map((tool) => dirname(toolPath(tool)));
    const env = {
      ...goProgramEnv,
      ...Object.fromEntries((container.env ?? []).map(({ name, value = "" }) => [name, value])),
      PATH: [...tools, process.env["PATH"] ?? ""].join(":"),
      HOME: home,
      PULUMI_HOME: join(home, ".pulumi"),
    };
    const flags = (container.command ?? []).filter((flag) => flag.startsWith("--allow-"));
    const share = ["--share", join(folder, "share"), "--tls", tls, "--pulumi", this.#options.pulumi];
    const listen = ["--host", "127.0.0.1", "--port", "0", "--grace-seconds", "5"];
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const logFile = join(folder, agentLog);
    const agent = spawnChild({
      command: ["env", "-i", ...variables, ...this.#options.agent, ...share, ...listen, ...flags],
      logFile,
    });
    const readPort = async (): Promise<number | undefined> => readyPort(await Bun.file(logFile).text());
    return { agent, port: await waitFor(readPort, { timeoutMs, what: "an agent to be ready" }) };
  }

  async #stopPod(key: Key, signal?: NodeJS.Signals): Promise<void> {
    const known = this.#pods.get(key);
    this.#pods.delete(key);
    await Promise.all([known?.proxy.stop(), known?.agent.stop(signal)]);
  }

  /** Like a kubelet, waits for the Secret of the pod's volume. */
  async #agentCertificate(name: string): Promise<Certificate> {
    const secret = await this.#secret(name);
    return { ca: textIn(secret, "ca.crt"), cert: textIn(secret, "tls.crt"), key: textIn(secret, "tls.key") };
  }

  async #operatorCertificate(): Promise<Certificate> {
    const secret = await this.#secret(caSecretName, this.#options.home);
    return await issueOperatorCertificate(JSON.parse(textIn(secret, "authorities.json")) as Authorities, new Date());
  }

  async #secret(name: string, namespace = this.#options.namespace): Promise<ApiObject<Secret>> {
    const { client } = this.#options;
    return await waitFor(() => client.find(builtin.secrets, { namespace, name }), {
      timeoutMs,
      what: `Secret ${name}`,
    });
  }
}

/** The CLI and the program outlive an agent that is killed; processes of a pod do not outlive the pod. */
async function killProcesses(folder: string): Promise<void> {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const environment = await Bun.file(`/proc/${pid}/environ`)
      .text()
      .catch(() => "");
    if (environment.includes(`PULUMI_HOME=${folder}/`)) process.kill(Number(pid), "SIGKILL");
  }
}

const textIn = ({ data }: ApiObject<Secret>, key: string): string =>
  Buffer.from(data?.[key] ?? "", "base64").toString();

function runningStatus(image: string, ip: string): NonNullable<Pod["status"]> {
  const now = new Date().toISOString().replace(/\.\d+/, "");
  const condition = (type: string) => ({ type, status: "True", lastTransitionTime: now });
  return {
    phase: "Running",
    podIP: ip,
    podIPs: [{ ip }],
    conditions: ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition),
    containerStatuses: [
      {
        name: pulumiContainer,
        image,
        imageID: image,
        ready: true,
        restartCount: 0,
        state: { running: { startedAt: now } },
      },
    ],
  };
}
