/** The console's server and pages in a real browser, against the tests' API server, with objects as the operator writes them. */
import {
  labelsOfStack,
  leaseName,
  updateRecordKind,
  type Condition,
  type StackSpec,
  type StackStatus,
  type Update,
  type UpdateRecord,
  type UpdateRecordContent,
} from "@pko/api";
import { startConsole, type Console } from "@pko/console";
import { buildConsole } from "@pko/console/build";
import { builtin, resource, timestamp, type Client, type Credentials } from "@pko/kube";
import { removeNamespace, serviceAccountToken, type ApiServer, type FaultProxy } from "@pko/testkit";
import type { BrowserContext } from "playwright-core";

import { sharedBrowser, Visitor } from "../../browser/visitor.ts";
import { apiServerWithApi, stacks, updates } from "../api/install.ts";
import { grant, type Rule } from "../harness/permissions.ts";
import { stackStatuses } from "../harness/stack-status.ts";

export { testTimeoutMs } from "../api/install.ts";

const records = resource<UpdateRecord>(updateRecordKind);

/** The time that pages show, so that screenshots are always the same. */
export const now = Date.UTC(2030, 0, 1, 12);
export const ago = (seconds: number): string => timestamp(now - seconds * 1000);
export const ahead = (seconds: number): string => timestamp(now + seconds * 1000);

export interface Look {
  readonly theme?: "light" | "dark";
  readonly width?: number;
  readonly height?: number;
}

type ConsoleOptions = Parameters<typeof startConsole>[0];

interface InCluster {
  /** The names of the console; any if absent. */
  readonly hosts?: readonly string[];
  /** Instead of the tests' API server. */
  readonly api?: Pick<FaultProxy, "url" | "ca">;
}

let assets: ReturnType<typeof buildConsole> | undefined;

/** Bundled once for all tests of the process. */
const consoleAssets = async () => await (assets ??= buildConsole());

export class BrowserStage implements AsyncDisposable {
  readonly server: ApiServer;
  readonly client: Client;
  readonly #contexts: BrowserContext[] = [];
  readonly #consoles: Console[] = [];
  readonly #namespaces: string[] = [];

  private constructor(server: ApiServer) {
    this.server = server;
    this.client = server.client;
  }

  static async set(): Promise<BrowserStage> {
    return new BrowserStage(await apiServerWithApi());
  }

  /** A cluster admin, as with `kubectl pulumi ui`. */
  async admin(look: Look = {}, credentials: Credentials = this.server.credentials): Promise<Visitor> {
    const started = await this.#start({ mode: "kubeconfig", credentials, context: "test" });
    const visitor = await this.#visitor(started.url, look);
    await visitor.page.goto(started.url);
    await visitor.page.getByRole("heading", { level: 1 }).waitFor();
    return visitor;
  }

  /** Where users enter a token of their own. */
  async withTokens({ hosts, api }: InCluster = {}): Promise<string> {
    const { url: server, ca } = api ?? { url: this.server.url, ca: this.server.authority.cert };
    const { port } = await this.#start({ mode: "cluster", server, ca: async () => ca }, hosts);
    return `http://127.0.0.1:${port}/`;
  }

  async visit(url: string, look: Look = {}): Promise<Visitor> {
    const visitor = await this.#visitor(url, look);
    await visitor.page.goto(url);
    return visitor;
  }

  async #start(signIn: ConsoleOptions["signIn"], hosts: readonly string[] = []): Promise<Console> {
    const assets = await consoleAssets();
    const started = await startConsole({ signIn, port: 0, hostname: "127.0.0.1", hosts, assets });
    this.#consoles.push(started);
    return started;
  }

  async #visitor(url: string, { theme = "light", width = 1280, height = 800 }: Look): Promise<Visitor> {
    const browser = await sharedBrowser();
    const context = await browser.newContext({
      colorScheme: theme,
      viewport: { width, height },
      locale: "en-US",
      timezoneId: "UTC",
      reducedMotion: "reduce",
      // Of a proxy in front of the console.
      ignoreHTTPSErrors: true,
    });
    this.#contexts.push(context);
    const page = await context.newPage();
    await page.clock.setFixedTime(now);
    return new Visitor(page, new URL(url).origin);
  }

  async namespace(name: string): Promise<void> {
    const { apiVersion, kind } = builtin.namespaces;
    await this.client.create(builtin.namespaces, { apiVersion, kind, metadata: { name } });
    this.#namespaces.push(name);
  }

  /** The token of a service account that has exactly these permissions in the namespace. */
  async user(namespace: string, name: string, rules: readonly Rule[]): Promise<string> {
    const metadata = { name, namespace };
    const { apiVersion, kind } = builtin.serviceAccounts;
    await this.client.create(builtin.serviceAccounts, { apiVersion, kind, metadata });
    await grant(this.client, metadata, { subject: { kind: "ServiceAccount", name, namespace }, rules });
    return await serviceAccountToken(this.client, { namespace, name });
  }

  async stack(id: string, status?: StackStatus, spec: Partial<StackSpec> = {}): Promise<void> {
    const [namespace = "", name = ""] = id.split("/");
    const { apiVersion, kind } = stacks;
    const source = spec.projectRepo ? {} : { programRef: { name: "program" } };
    const metadata = { name, namespace };
    await this.client.create(stacks, { apiVersion, kind, metadata, spec: { stack: "dev", ...source, ...spec } });
    if (status) await this.status(id, status);
  }

  async status(id: string, status: StackStatus): Promise<void> {
    const [namespace = "", name = ""] = id.split("/");
    const body = { status };
    await this.client.patch(stacks, { namespace, name }, { patch: { type: "merge", body }, subresource: "status" });
  }

  async update(id: string, stack: string, change: Pick<Update, "spec" | "status">): Promise<void> {
    const [namespace = "", name = ""] = id.split("/");
    const { apiVersion, kind } = updates;
    const spec = { workspaceName: stack, stackName: "dev", type: "up", ...change.spec };
    const metadata = { namespace, name, labels: labelsOfStack(stack) };
    await this.client.create(updates, { apiVersion, kind, metadata, spec });
    const body = { status: change.status ?? {} };
    await this.client.patch(updates, { namespace, name }, { patch: { type: "merge", body }, subresource: "status" });
  }

  async record(
    id: string,
    record: Omit<UpdateRecordContent, "updateName" | "updateUid" | "pulumiStack">,
  ): Promise<void> {
    const [namespace = "", name = ""] = id.split("/");
    const { apiVersion, kind } = records;
    const metadata = { namespace, name, labels: labelsOfStack(record.stackName ?? "") };
    const content: UpdateRecordContent = {
      updateName: name,
      updateUid: `uid-of-${name}`,
      pulumiStack: "dev",
      ...record,
    };
    await this.client.create(records, { apiVersion, kind, metadata, record: content });
  }

  /** A replica of the operator. */
  async replica(namespace: string, name: string): Promise<void> {
    const { apiVersion, kind } = builtin.pods;
    const metadata = { name, namespace, labels: { "app.kubernetes.io/name": "pulumi-kubernetes-operator" } };
    const spec = { containers: [{ name: "manager", image: "pulumi/pulumi-kubernetes-operator:v3.0.0" }] };
    await this.client.create(builtin.pods, { apiVersion, kind, metadata, spec });
    const body = { status: { phase: "Running", containerStatuses: [{ ...containerStatus, name: "manager" }] } };
    await this.client.patch(
      builtin.pods,
      { namespace, name },
      { patch: { type: "merge", body }, subresource: "status" },
    );
  }

  async lease(namespace: string, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
    const { apiVersion, kind } = builtin.leases;
    const microTime = (seconds: number): string => new Date(now - seconds * 1000).toISOString().replace("Z", "000Z");
    const times = { renewTime: microTime(2), acquireTime: microTime(86_400) };
    const spec = { holderIdentity: "operator-0_5f2c9e0d", leaseDurationSeconds: 15, leaseTransitions: 1, ...times };
    const metadata = { name: leaseName, namespace, annotations };
    await this.client.apply(builtin.leases, { apiVersion, kind, metadata, spec }, { fieldManager: "test" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#contexts.map(async (each) => await each.close()));
    await Promise.all(this.#consoles.map(async (each) => await each.stop()));
    // The console shows the whole cluster, also to the tests of other files.
    for (const name of this.#namespaces) await removeNamespace(this.server, name);
  }
}

const containerStatus = { ready: true, restartCount: 0, image: "", imageID: "" };

export const { condition, stalled, reconciling, ready } = stackStatuses(() => ago(3600));

export const drifted = (message: string): Condition =>
  condition("Drifted", { status: "True", reason: "DriftDetected", message });
