/**
 * A scene with one Workspace, its controllers, and a process of the real agent with the real CLI. A fake kubelet copies the
 * Workspace's certificate from its Secret to the agent's folder.
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

import { agentPort, caSecretName, type Update } from "@pko/api";
import { toolPath } from "@pko/cluster";
import { builtin, refKey, systemClock, type ApiObject, type Clock } from "@pko/kube";
import {
  operatorCa,
  preparations,
  runs,
  updateController,
  updates,
  workspaceController,
  workspaces,
  type OperatorCa,
} from "@pko/operator";
import { trustBundle, type Authorities, type Certificate } from "@pko/rpc/pki";
import { programPath, spawnChild, waitFor, type ChildProcess } from "@pko/testkit";
import type { Secret } from "kubernetes-types/core/v1";

import { policyInForce } from "../approvals/decide.ts";
import type { Operator, OperatorParts, Wiring } from "../harness/operator.ts";
import { controllerOf, running } from "../harness/pods.ts";
import { openPlace, Scene, type SceneParts } from "../harness/scene.ts";

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

export class CaScene extends Scene {
  readonly #folder = mkdtempSync(join(tmpdir(), "pko-ca-"));
  #ca: OperatorCa | undefined;
  #operator: Operator | undefined;
  #agent: ChildProcess | undefined;
  #copies = 0;
  #copied = "";
  #isKubeletPaused = false;
  /** The operators so far. */
  readonly #operators: Operator[] = [];

  private constructor(parts: SceneParts) {
    super(parts);
    this.defer(() => rmSync(this.#folder, { recursive: true, force: true }));
    this.defer(() => this.#agent?.stop("SIGKILL"));
  }

  /** Returns once the Workspace is ready for Updates. */
  static async open(authorities: Authorities): Promise<CaScene> {
    const scene = new CaScene(await openPlace());
    await scene.#prepare(authorities);
    return scene;
  }

  /** Of the current operator. */
  get ca(): OperatorCa {
    if (!this.#ca) throw new Error("no operator is running");
    return this.#ca;
  }

  async #prepare(authorities: Authorities): Promise<void> {
    await this.storeCa(authorities);
    const dir = join(this.#folder, "program");
    for (const folder of [dir, join(this.#folder, "home"), join(this.#folder, "backend")]) mkdirSync(folder);
    writeFileSync(join(dir, "Pulumi.yaml"), JSON.stringify(project));
    this.#writeCli();
    await this.startNextOperator();
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
    writeFileSync(path, `#!/bin/sh\n${wait}\nexec '${toolPath("quick-pulumi")}' "$@"\n`);
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
    this.#runKubelet();
    await this.#startAgent();
    const body = { status: { ...running(1), podIP, podIPs: [{ ip: podIP }] } };
    const change = { patch: { type: "merge", body }, subresource: "status" } as const;
    await this.client.patch(builtin.pods, this.ref(`${name}-0`), change);
  }

  async #startAgent(): Promise<void> {
    const tools = (["quick-pulumi", "pulumi-language-yaml"] as const).map((tool) => dirname(toolPath(tool)));
    const env = {
      PATH: [...tools, process.env["PATH"] ?? ""].join(":"),
      HOME: join(this.#folder, "home"),
      PULUMI_HOME: join(this.#folder, "home", ".pulumi"),
      PULUMI_BACKEND_URL: `file://${join(this.#folder, "backend")}`,
      PULUMI_CONFIG_PASSPHRASE: "passphrase",
    };
    const folders = ["--share", join(this.#folder, "share"), "--tls", join(this.#folder, "tls")];
    const flags = ["--host", podIP, "--pulumi", join(this.#folder, "pulumi"), ...folders];
    const command = [process.execPath, programPath("agent"), ...flags];
    const agent = spawnChild({ command, env, logFile: join(this.#folder, "agent.log") });
    this.#agent = agent;
    await this.#until("the agent", async () => (await agent.log()).includes("agent ready"));
  }

  #runKubelet(): void {
    const stop = new AbortController();
    const copy = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        if (!this.#isKubeletPaused) await this.#copyCertificate();
        await Bun.sleep(100);
      }
    };
    const ended = copy();
    this.defer(async () => {
      stop.abort();
      await ended;
    });
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

  /** Starts an operator without the memory of the previous one. */
  async startNextOperator(clock: Clock = systemClock): Promise<void> {
    const ca = operatorCa({ client: this.rights.client, namespace: this.namespace, clock });
    await ca.load();
    this.#ca = ca;
    this.#operator = this.startOperator({}, (parts) => wireWithAgents(parts, ca));
    this.#operators.push(this.#operator);
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
    const events = this.#operators.flatMap((operator) => operator.events);
    return events.filter(({ about, reason }) => about === name && reason === "UpdateSucceeded").length;
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
}

/** The controllers that `operator.ts` starts, without those of Stacks and Programs. */
function wireWithAgents({ stores, client, events }: OperatorParts, ca: OperatorCa): Wiring {
  const { workspaces, updates, statefulSets, pods, programs, stacks, approvals } = stores;
  const backoff = { baseMs: 50, factor: 1.5, capMs: 500, jitter: 0 };
  const connection = { ca, backoff, busyBackoff: backoff };
  const preparing = preparations({ ...connection, wake: (workspace) => workspaceControl.enqueue(refKey(workspace)) });
  const running = runs({ ...connection, preparations: preparing, wake: (runId) => updateControl.wakeRun(runId) });
  const workspaceControl = workspaceController({
    client,
    events,
    reflectors: { workspaces, updates, statefulSets, pods, programs },
    ca,
    preparations: preparing,
    runs: running,
    settings: { agentImage: "agent:1", idleTimeoutMs: 0, certificateMs: 0 },
  });
  const updateControl = updateController({
    client,
    events,
    updates,
    workspaces,
    pods,
    stacks,
    approvals,
    approvalPolicy: policyInForce,
    runs: running,
    projects: preparing,
  });
  const stopFollowing = ca.follow(() => {
    for (const { metadata } of workspaces.store.list()) {
      workspaceControl.enqueue(`${metadata.namespace}/${metadata.name}`);
    }
  });
  const stop = async (): Promise<void> => {
    stopFollowing();
    await Promise.all([preparing.stop(), running.stop()]);
  };
  return { controllers: [workspaceControl, updateControl], stop };
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
