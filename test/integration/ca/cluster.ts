/**
 * One Workspace on a real API server, with the controllers of the operator and a process of the real agent with the real CLI.
 * A fake kubelet copies the Workspace's certificate from its Secret to the agent's folder.
 */
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { connect } from "node:tls";

import { agentPort, caSecretName, pulumiContainer, type Update } from "@pko/api";
import { toolPath } from "@pko/cluster";
import {
  builtin,
  manager,
  reflector,
  refKey,
  systemClock,
  type Client,
  type Clock,
  type EventRecorder,
  type ApiObject,
  type ObjectRef,
} from "@pko/kube";
import {
  approvalIndexers,
  approvals,
  operatorCa,
  podIndexers,
  preparations,
  programs,
  runs,
  updateController,
  updateIndexers,
  updates,
  workspaceController,
  workspaces,
  stacks,
} from "@pko/operator";
import { trustBundle, type Authorities, type Certificate } from "@pko/rpc/pki";
import { spawnChild, testNamespace, waitFor, type ChildProcess, type TestNamespace } from "@pko/testkit";
import type { Secret } from "kubernetes-types/core/v1";

import { apiServerWithApi } from "../api/install.ts";
import { policyInForce } from "../approvals/decide.ts";
import { controllerOf } from "../workspace/harness.ts";

const repository = join(import.meta.dir, "../../..");
const certificateFiles = ["ca.crt", "tls.crt", "tls.key"] as const;
const timeoutMs = 60_000;

/** A loopback address that no other test uses. */
const podIP = "127.79.0.1";
const project = {
  name: "shop",
  runtime: "yaml",
  resources: { kept: { type: "pulumi:index:Stash", properties: { input: "hello" } } },
  outputs: { greeting: "${kept.output}" },
};

export class CaCluster implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "pko-ca-"));
  readonly #place: TestNamespace;
  readonly #stopKubelet = new AbortController();
  #operator: Operator | undefined;
  #agent: ChildProcess | undefined;
  #kubelet: Promise<void> = Promise.resolve();
  #copies = 0;
  #copied = "";
  #isKubeletPaused = false;
  readonly #recorded: string[] = [];

  private constructor(place: TestNamespace) {
    this.#place = place;
  }

  /** Returns once the Workspace is ready for Updates. */
  static async open(authorities: Authorities): Promise<CaCluster> {
    const server = await apiServerWithApi();
    const cluster = new CaCluster(await testNamespace({ server }));
    await cluster.#prepare(authorities);
    return cluster;
  }

  get client(): Client {
    return this.#place.client;
  }

  get operator(): Operator {
    if (!this.#operator) throw new Error("no operator is running");
    return this.#operator;
  }

  ref(name: string): ObjectRef {
    return { namespace: this.#place.name, name };
  }

  async #prepare(authorities: Authorities): Promise<void> {
    const metadata = this.ref("default");
    await this.client.create(builtin.serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata });
    await this.storeCa(authorities);
    const dir = join(this.#folder, "program");
    for (const folder of [dir, join(this.#folder, "home"), join(this.#folder, "backend")]) mkdirSync(folder);
    writeFileSync(join(dir, "Pulumi.yaml"), JSON.stringify(project));
    this.#writeCli();
    this.startOperator();
    const { apiVersion, kind } = workspaces;
    const spec = { local: { dir }, stacks: [{ name: "dev", create: true }] };
    await this.client.create(workspaces, { apiVersion, kind, metadata: this.ref("web"), spec });
    await this.#startPod();
    await this.#until("the Workspace to be ready", async () => {
      const { status } = await this.client.get(workspaces, this.ref("web"));
      return status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
    });
  }

  /** A wrapper of the CLI that records each start of an `up` and waits until the gate is opened. */
  #writeCli(): void {
    const log = join(this.#folder, "starts.log");
    const gate = join(this.#folder, "gate");
    execFileSync("mkfifo", [gate]);
    const wait = `case " $* " in *" up "*) echo up >> '${log}'; cat '${gate}' > /dev/null;; esac`;
    const path = join(this.#folder, "pulumi");
    writeFileSync(path, `#!/bin/sh\n${wait}\nexec '${toolPath("pulumi")}' "$@"\n`);
    chmodSync(path, 0o755);
  }

  /** How often an `up` has started. */
  starts(): number {
    const log = join(this.#folder, "starts.log");
    return existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n").length : 0;
  }

  async openGate(): Promise<void> {
    await this.#until("the CLI to wait at the gate", () => {
      try {
        closeSync(openSync(join(this.#folder, "gate"), constants.O_WRONLY | constants.O_NONBLOCK));
        return true;
      } catch {
        return false;
      }
    });
  }

  /** Does the work of the StatefulSet controller and the kubelet. */
  async #startPod(): Promise<void> {
    const name = "web-workspace";
    const set = await this.#until("the StatefulSet", () => this.client.find(builtin.statefulSets, this.ref(name)));
    const status = { observedGeneration: set.metadata.generation, replicas: 1, updateRevision: "one" };
    const patch = { type: "merge", body: { status } } as const;
    await this.client.patch(builtin.statefulSets, this.ref(name), { patch, subresource: "status" });
    const { template } = set.spec ?? {};
    const labels = { ...template?.metadata?.labels, "controller-revision-hash": "one" };
    const ownerReferences = [controllerOf(builtin.statefulSets, set)];
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { ...this.ref(`${name}-0`), labels, ownerReferences } };
    await this.client.create(builtin.pods, { ...pod, ...(template?.spec && { spec: template.spec }) });
    await this.#until("the certificate", () => this.#copyCertificate());
    this.#kubelet = this.#copyCertificates();
    await this.#startAgent();
    const running = { phase: "Running", podIP, podIPs: [{ ip: podIP }], containerStatuses: [runningContainer()] };
    const body = { status: running };
    const change = { patch: { type: "merge", body }, subresource: "status" } as const;
    await this.client.patch(builtin.pods, this.ref(`${name}-0`), change);
  }

  async #startAgent(): Promise<void> {
    const tools = (["pulumi", "pulumi-language-yaml"] as const).map((tool) => dirname(toolPath(tool)));
    const env = {
      PATH: [...tools, process.env["PATH"] ?? ""].join(":"),
      HOME: join(this.#folder, "home"),
      PULUMI_HOME: join(this.#folder, "home", ".pulumi"),
      PULUMI_BACKEND_URL: `file://${join(this.#folder, "backend")}`,
      PULUMI_CONFIG_PASSPHRASE: "passphrase",
    };
    const folders = ["--share", join(this.#folder, "share"), "--tls", join(this.#folder, "tls")];
    const flags = ["--host", podIP, "--pulumi", join(this.#folder, "pulumi"), ...folders];
    const command = [process.execPath, join(repository, "packages/agent/src/main.ts"), ...flags];
    const agent = spawnChild({ command, env, logFile: join(this.#folder, "agent.log") });
    this.#agent = agent;
    await this.#until("the agent", async () => (await agent.log()).includes("agent ready"));
  }

  async #copyCertificates(): Promise<void> {
    const { signal } = this.#stopKubelet;
    while (!signal.aborted) {
      if (!this.#isKubeletPaused) await this.#copyCertificate();
      await Bun.sleep(100);
    }
  }

  /** Until `resumeKubelet`, the agent keeps `certificate`, whatever the operator stores. Returns once the agent serves it. */
  async pauseKubeletWith(certificate: Certificate): Promise<void> {
    await this.storeCertificate(certificate);
    await this.#until("the kubelet to copy the certificate", () => this.certificate() === certificate.cert);
    this.#isKubeletPaused = true;
    const { serialNumber } = new X509Certificate(certificate.cert);
    await this.#until("the agent to load the certificate", async () => (await servedSerial()) === serialNumber);
  }

  resumeKubelet(): void {
    this.#isKubeletPaused = false;
  }

  /** Replaces all files atomically with a symbolic link, as the kubelet does. */
  async #copyCertificate(): Promise<boolean> {
    const secret = await this.client.find(builtin.secrets, this.ref("web-workspace-tls"));
    const data = JSON.stringify(secret?.data);
    if (!secret?.data || data === this.#copied) return secret !== undefined;
    this.#copied = data;
    this.#copies += 1;
    const folder = join(this.#folder, `tls-${this.#copies}`);
    mkdirSync(folder);
    for (const name of certificateFiles) writeFileSync(join(folder, name), textIn(secret, name));
    symlinkSync(folder, `${folder}-link`);
    renameSync(`${folder}-link`, join(this.#folder, "tls"));
    return true;
  }

  startOperator(clock: Clock = systemClock): void {
    const record = (name: string): unknown => this.#recorded.push(name);
    this.#operator = new Operator(this.client, { namespace: this.#place.name, clock, record });
  }

  async stopOperator(): Promise<void> {
    await this.#operator?.stop();
    this.#operator = undefined;
  }

  async storedCa(): Promise<string> {
    return textIn(await this.client.get(builtin.secrets, this.ref(caSecretName)), "authorities.json");
  }

  async storeCa(authorities: Authorities): Promise<void> {
    const data = {
      "authorities.json": encode(JSON.stringify(authorities)),
      "ca.crt": encode(trustBundle(authorities)),
    };
    const metadata = { ...this.ref(caSecretName), name: caSecretName };
    const body = { apiVersion: "v1", kind: "Secret", metadata, type: "Opaque", data };
    await this.client.apply(builtin.secrets, body, { fieldManager: "test" });
  }

  async deleteCa(): Promise<void> {
    await this.client.delete(builtin.secrets, this.ref(caSecretName));
  }

  async patchCa(body: object): Promise<void> {
    await this.client.patch(builtin.secrets, this.ref(caSecretName), { patch: { type: "merge", body } });
  }

  async storeCertificate({ ca, cert, key }: Certificate): Promise<void> {
    const data = { "ca.crt": encode(ca), "tls.crt": encode(cert), "tls.key": encode(key) };
    const patch = { type: "merge", body: { data } } as const;
    await this.client.patch(builtin.secrets, this.ref("web-workspace-tls"), { patch });
  }

  /** Returns once its CLI waits at the gate. */
  async startUpdate(name: string): Promise<void> {
    const before = this.starts();
    const { apiVersion, kind } = updates;
    const spec = { workspaceName: "web", stackName: "dev", type: "up" };
    await this.client.create(updates, { apiVersion, kind, metadata: this.ref(name), spec });
    await this.#until("the CLI to start", () => this.starts() > before);
  }

  /** Returns once the Update is in progress with this reason and message: an earlier operator may have left another. */
  async progressing(name: string, reason: string, message: string): Promise<Update> {
    return await this.#until(`${reason} of ${name}: ${message}`, async () => {
      const update = await this.client.get(updates, this.ref(name));
      const progressing = update.status?.conditions?.find(({ type }) => type === "Progressing");
      const isSame = progressing?.status === "True" && progressing.reason === reason;
      return isSame && progressing.message.includes(message) && update;
    });
  }

  /** Returns once the Update has a result. */
  async result(name: string): Promise<Update> {
    return await this.#until(`the result of ${name}`, async () => {
      const update = await this.client.get(updates, this.ref(name));
      return update.status?.conditions?.some(({ type, status }) => type === "Complete" && status === "True") && update;
    });
  }

  /** How often the success of the Update was reported by an event. */
  timesRecorded(name: string): number {
    return this.#recorded.filter((each) => each === name).length;
  }

  async podUid(): Promise<string | undefined> {
    return (await this.client.get(builtin.pods, this.ref("web-workspace-0"))).metadata.uid;
  }

  /** Returns once the agent has another certificate. */
  async waitForRenewal(before: string): Promise<void> {
    await this.#until("another certificate", () => this.certificate() !== before);
  }

  certificate(): string {
    return readFileSync(join(this.#folder, "tls", "tls.crt"), "utf8");
  }

  /** The CA bundle of the agent. */
  trustedByAgent(): string {
    return readFileSync(join(this.#folder, "tls", "ca.crt"), "utf8");
  }

  async #until<T>(what: string, condition: Parameters<typeof waitFor<T>>[0]): Promise<T> {
    try {
      return await waitFor<T>(condition, { timeoutMs, what });
    } catch (error) {
      throw new Error(`timed out waiting for ${what}; log of the agent: ${await this.#agent?.log()}`, { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopOperator();
    this.#stopKubelet.abort();
    await this.#kubelet;
    await this.#agent?.stop("SIGKILL");
    await this.#place.remove();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

interface OperatorOptions {
  readonly namespace: string;
  readonly clock: Clock;
  /** Called with the name of each Update whose success an event reports. */
  readonly record: (name: string) => void;
}

/** The controllers that `operator.ts` starts, without Stacks and Programs. */
class Operator {
  readonly ca: ReturnType<typeof operatorCa>;
  readonly #stop = new AbortController();
  readonly #ended: Promise<unknown>;

  constructor(client: Client, { namespace, clock, record }: OperatorOptions) {
    const scope = { namespaces: [namespace] };
    const reflectors = {
      workspaces: reflector(client, workspaces, scope),
      updates: reflector(client, updates, { ...scope, indexers: updateIndexers }),
      statefulSets: reflector(client, builtin.statefulSets, scope),
      pods: reflector(client, builtin.pods, { ...scope, indexers: podIndexers }),
      programs: reflector(client, programs, scope),
      stacks: reflector(client, stacks, scope),
      approvals: reflector(client, approvals, { ...scope, indexers: approvalIndexers }),
    };
    this.ca = operatorCa({ client, namespace, clock });
    const backoff = { baseMs: 50, factor: 1.5, capMs: 500, jitter: 0 };
    const dialling = { ca: this.ca, backoff, busyBackoff: backoff };
    const preparing = preparations({ ...dialling, wake: (workspace) => workspaceControl.enqueue(refKey(workspace)) });
    const running = runs({ ...dialling, wake: (runId) => updateControl.wakeRun(runId) });
    const events: EventRecorder = {
      record: ({ metadata }, { reason }) => void (reason === "UpdateSucceeded" && record(metadata?.name ?? "")),
      flush: () => Promise.resolve(),
    };
    const shared = { client, events };
    const workspaceControl = workspaceController({
      ...shared,
      reflectors,
      ca: this.ca,
      preparations: preparing,
      runs: running,
      settings: { agentImage: "agent:1", idleTimeoutMs: 0 },
    });
    const updateControl = updateController({
      ...shared,
      ...reflectors,
      runs: running,
      projects: preparing,
      approvalPolicy: policyInForce,
    });
    const stopFollowing = this.ca.follow(() => workspaceControl.enqueue(`${namespace}/web`));
    const flush = async (): Promise<void> => {
      stopFollowing();
      await Promise.all([preparing.stop(), running.stop()]);
    };
    const all = manager({ reflectors, controllers: [workspaceControl, updateControl], flush });
    this.#ended = this.ca.load().then(() => all.run(this.#stop.signal));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }
}

const encode = (text: string): string => Buffer.from(text).toString("base64");
const textIn = ({ data }: ApiObject<Secret>, key: string): string =>
  Buffer.from(data?.[key] ?? "", "base64").toString();

/** The serial number of the certificate that the agent presents to new connections. */
async function servedSerial(): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ host: podIP, port: agentPort, rejectUnauthorized: false });
  socket.once("secureConnect", () => resolve(socket.getPeerCertificate().serialNumber));
  socket.once("error", reject);
  return await promise.finally(() => socket.destroy());
}

function runningContainer() {
  const startedAt = new Date().toISOString().replace(/\.\d+/, "");
  const state = { running: { startedAt } };
  return { name: pulumiContainer, image: "i", imageID: "i", ready: true, restartCount: 0, state };
}
