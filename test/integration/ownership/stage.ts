/**
 * The operator as a process, with the RBAC rules of an installation, for several namespaces of a real API server. The
 * controllers of Kubernetes create the pods of StatefulSets and collect garbage. Each workspace pod has a fake agent.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { programKind, pulumiContainer, stackKind, type Stack } from "@pko/api";
import { builtin, reflector, type Client, type Key, type ApiObject, type ObjectRef } from "@pko/kube";
import { programs, stacks } from "@pko/operator";
import { checkStatus, spawnChild, testNamespace, waitFor, type ChildProcess, type TestNamespace } from "@pko/testkit";
import type { Pod } from "kubernetes-types/core/v1";

import { setStage, type Stage as Programs } from "../../faults/stage.ts";
import { operatorAccount, type OperatorAccount } from "../../rights/account.ts";
import { assertNoneForbidden, forbiddenIn } from "../../rights/forbidden.ts";
import { running } from "../harness/pods.ts";
import { FakeAgent } from "../update/fake-agent.ts";
import { prepared } from "../workspace/scene.ts";

export const testTimeoutMs = 180_000;
const agentPort = 50_051;

export class OwnershipStage implements AsyncDisposable {
  readonly #programs: Programs;
  readonly #operator: ChildProcess;
  readonly #node: FakeNode;
  readonly #spaces: readonly TestNamespace[];
  readonly #account: OperatorAccount;

  private constructor(parts: Programs, spaces: readonly TestNamespace[], account: OperatorAccount) {
    this.#programs = parts;
    this.#spaces = spaces;
    this.#account = account;
    const namespaces = spaces.map(({ name }) => name);
    writeFileSync(join(parts.folder, "kubeconfig"), account.kubeconfig);
    this.#operator = startOperator(parts, namespaces);
    this.#node = new FakeNode(parts.server.client, namespaces);
  }

  /** Creates a namespace for each test. */
  static async open(count: number): Promise<OwnershipStage> {
    const parts = await setStage();
    const { server } = parts;
    const spaces = await Promise.all(Array.from({ length: count }, () => testNamespace({ server })));
    for (const { client, name: namespace } of spaces) {
      const metadata = { name: "default", namespace };
      await client.create(builtin.serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata });
    }
    const namespaces = spaces.map(({ name }) => name);
    const account = await operatorAccount({ admin: server.credentials, home: namespaces[0] ?? "", namespaces });
    return new OwnershipStage(parts, spaces, account);
  }

  place(index: number): Place {
    const space = this.#spaces[index];
    if (!space) throw new RangeError(`there are ${this.#spaces.length} namespaces`);
    return new Place(space.client, space.name);
  }

  async log(): Promise<string> {
    return await Bun.file(join(this.#programs.folder, "operator.log")).text();
  }

  /** Throws if the API server answered a request of the operator with 403. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operator.stop();
    const log = await this.log();
    await this.#node[Symbol.asyncDispose]();
    await this.#account.remove();
    await Promise.all(this.#spaces.map((space) => space.remove()));
    await this.#programs[Symbol.asyncDispose]();
    assertNoneForbidden(forbiddenIn(log));
  }
}

function startOperator({ folder, programs }: Programs, namespaces: readonly string[]): ChildProcess {
  const flags = {
    kubeconfig: join(folder, "kubeconfig"),
    namespace: namespaces[0] ?? "",
    "watch-namespaces": namespaces.join(","),
    "agent-image": "agent:1",
    "pod-name": "operator",
    "probe-address": "127.0.0.1:0",
    "metrics-address": "127.0.0.1:0",
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  return spawnChild({ command: [...programs.operator, ...args], logFile: join(folder, "operator.log") });
}

/** A namespace, with helpers for its Stacks. */
export class Place {
  readonly client: Client;
  readonly namespace: string;

  constructor(client: Client, namespace: string) {
    this.client = client;
    this.namespace = namespace;
  }

  at(name: string): ObjectRef & { readonly namespace: string } {
    return { namespace: this.namespace, name };
  }

  /** Creates a Stack that waits for its Program, so that its UID is known before it owns anything. */
  async stack(name: string): Promise<Stack> {
    const { apiVersion, kind } = stackKind;
    const spec = { stack: "dev", programRef: { name }, destroyOnFinalize: true };
    const created = await this.client.create(stacks, { apiVersion, kind, metadata: this.at(name), spec });
    await this.until(name, "wait for its Program", (stack) => stalledReason(stack) === "SourceUnavailable");
    return created;
  }

  async program(name: string): Promise<void> {
    const { apiVersion, kind } = programKind;
    const program = { variables: { text: "one" } };
    await this.client.create(programs, { apiVersion, kind, metadata: this.at(name), program });
  }

  async change(name: string, body: object): Promise<void> {
    await this.client.patch(stacks, this.at(name), { patch: { type: "merge", body } });
  }

  async until(name: string, what: string, isSatisfied: (stack: Stack) => boolean): Promise<Stack> {
    let last: Stack | undefined;
    try {
      return await waitFor(
        async () => {
          last = await this.client.get(stacks, this.at(name));
          checkStatus(last);
          return isSatisfied(last) && last;
        },
        { timeoutMs: testTimeoutMs / 3, what: `${name} to ${what}`, pollMs: 100 },
      );
    } catch (error) {
      throw new Error(`Stack ${name} did not ${what}: ${JSON.stringify(last?.status, undefined, 1)}`, { cause: error });
    }
  }

  async waitForDeletion(name: string): Promise<void> {
    const isDeleted = async (): Promise<boolean> => (await this.client.find(stacks, this.at(name))) === undefined;
    await waitFor(isDeleted, { timeoutMs: testTimeoutMs / 3, what: `${name} to be deleted`, pollMs: 100 });
  }
}

export const stalledCondition = ({ status }: Stack) => status?.conditions?.find(({ type }) => type === "Stalled");

const stalledReason = (stack: Stack): string => stalledCondition(stack)?.reason ?? "";

export const isReady = ({ metadata, status }: Stack): boolean =>
  status?.observedGeneration === metadata.generation &&
  status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";

/** Counts the loopback addresses, one for each pod. */
let addresses = 0;

class FakeNode implements AsyncDisposable {
  readonly #client: Client;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #agents = new Map<Key, { readonly uid: string; readonly agent: Promise<FakeAgent | undefined> }>();

  constructor(client: Client, namespaces: readonly string[]) {
    this.#client = client;
    const pods = reflector(client, builtin.pods, { namespaces });
    pods.store.subscribe(({ key, after }) => this.#onPodChange(key, after));
    this.#running = pods.run(this.#stop.signal);
  }

  #onPodChange(key: Key, pod: ApiObject<Pod> | undefined): void {
    const known = this.#agents.get(key);
    const uid = pod?.metadata.uid ?? "";
    if (known && known.uid !== uid) {
      this.#agents.delete(key);
      void known.agent.then((agent) => agent?.close());
    }
    const isWorkspace = pod?.spec?.containers.some(({ name }) => name === pulumiContainer);
    if (!pod || !isWorkspace || this.#agents.has(key)) return;
    this.#agents.set(key, { uid, agent: this.#startAgent(pod).catch(() => undefined) });
  }

  async #startAgent({ metadata: { name = "", namespace = "" } }: ApiObject<Pod>): Promise<FakeAgent> {
    addresses += 1;
    const number = addresses;
    const status = running(number);
    const ip = `127.78.${Math.floor(number / 250)}.${1 + (number % 250)}`;
    const secret = await waitFor(
      () => this.#client.find(builtin.secrets, { namespace, name: name.replace(/-0$/, "-tls") }),
      { timeoutMs: testTimeoutMs / 3, what: "the certificate" },
    );
    const text = (key: string): string => Buffer.from(secret.data?.[key] ?? "", "base64").toString();
    const certificate = { ca: text("ca.crt"), cert: text("tls.crt"), key: text("tls.key") };
    const workspace = { namespace, name: name.replace(/-workspace-0$/, "") };
    const agent = new FakeAgent(workspace, { hostname: ip, port: agentPort });
    agent.preparation = prepared;
    agent.outputs.push({ name: "greeting", secret: false, known: true, value: "hello" });
    agent.onStart = (runId) => setTimeout(() => agent.finish(runId), 0);
    await agent.listen({ workspaceCertificate: async () => certificate });
    const body = { status: { ...status, podIP: ip, podIPs: [{ ip }] } };
    const patch = { type: "merge", body } as const;
    await this.#client.patch(builtin.pods, { namespace, name }, { patch, subresource: "status" });
    return agent;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await Promise.all([...this.#agents.values()].map(async ({ agent }) => (await agent)?.close()));
  }
}
