/** The console in front of the tests' API server, and users with exactly the permissions that a test grants. */
import { startConsole, type Console, type SignIn } from "@pko/console";
import {
  encodeSubscriptions,
  type StreamMessage,
  type Subscription,
  type WatchSubscription,
} from "@pko/console/contract";
import { builtin, type Client, type KubeObject } from "@pko/kube";
import { faultProxy, serviceAccountToken, testNamespace, waitFor, type FaultProxy } from "@pko/testkit";

import { apiServerWithApi, stacks } from "../api/install.ts";
import { grant, type Rule } from "../harness/permissions.ts";

export const viewRule: Rule = {
  apiGroups: ["pulumi.com", "auto.pulumi.com"],
  resources: ["*"],
  verbs: ["get", "list", "watch"],
};

const assets = new Map();

export class ConsoleStage implements AsyncDisposable {
  readonly console: Console;
  readonly client: Client;
  readonly namespace: string;
  /** Between the console and the API server. */
  readonly proxy: FaultProxy;
  readonly #place: AsyncDisposable;
  readonly #opened: TestStream[] = [];

  private constructor(
    parts: Pick<ConsoleStage, "console" | "client" | "namespace" | "proxy"> & { place: AsyncDisposable },
  ) {
    this.console = parts.console;
    this.client = parts.client;
    this.namespace = parts.namespace;
    this.proxy = parts.proxy;
    this.#place = parts.place;
  }

  static async set(signIn?: (proxy: FaultProxy) => SignIn): Promise<ConsoleStage> {
    const server = await apiServerWithApi();
    const place = await testNamespace();
    const proxy = await faultProxy(server.credentials);
    const inCluster: SignIn = { mode: "cluster", server: proxy.url, ca: async () => proxy.ca };
    const console = await startConsole({
      signIn: signIn?.(proxy) ?? inCluster,
      port: 0,
      hostname: "127.0.0.1",
      assets,
    });
    return new ConsoleStage({ console, client: server.client, namespace: place.name, proxy, place });
  }

  /** Returns a token of a new user. */
  async user(name: string, rules: readonly Rule[], namespace = this.namespace): Promise<string> {
    const account = { name, namespace };
    const { apiVersion, kind } = builtin.serviceAccounts;
    await this.client.create(builtin.serviceAccounts, { apiVersion, kind, metadata: account });
    if (rules.length > 0) {
      await grant(this.client, account, { subject: { kind: "ServiceAccount", ...account }, rules });
    }
    return await serviceAccountToken(this.client, account);
  }

  async stack(name: string, namespace = this.namespace): Promise<void> {
    const { apiVersion, kind } = stacks;
    const spec = { stack: "dev", programRef: { name: "program" } };
    await this.client.create(stacks, { apiVersion, kind, metadata: { name, namespace }, spec });
  }

  async change(name: string, value: string): Promise<void> {
    const body = { metadata: { annotations: { value } } };
    await this.client.patch(stacks, { name, namespace: this.namespace }, { patch: { type: "merge", body } });
  }

  /** As the proxy of a user with this token sends it. */
  async send(token: string, path: string, init: Omit<RequestInit, "headers"> = {}): Promise<Response> {
    const origin = `http://127.0.0.1:${this.console.port}`;
    const type = init.method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const own = { origin, "x-pulumi-console": "1", "content-type": type };
    const headers = { ...(token !== "" && { authorization: `Bearer ${token}` }), ...(init.method && own) };
    return await fetch(`${origin}${path}`, { ...init, headers });
  }

  /** Waits until the role of the user is effective. */
  async until(token: string, path: string, status: number): Promise<void> {
    await waitFor(async () => (await this.send(token, path)).status === status, { timeoutMs: 30_000 });
  }

  async stream(token: string, subscriptions: readonly Subscription[]): Promise<TestStream> {
    const response = await this.send(token, `/stream?q=${encodeSubscriptions(subscriptions)}`);
    const stream = new TestStream(response);
    this.#opened.push(stream);
    return stream;
  }

  stacksIn = (namespace: string, more: Partial<WatchSubscription> = {}): WatchSubscription => ({
    id: "s",
    kind: "watch",
    resource: "stacks",
    namespace,
    ...more,
  });

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.#opened) await each.close();
    await this.console.stop();
    await this.proxy.close();
    await this.#place[Symbol.asyncDispose]();
  }
}

/** What a page receives. */
export class TestStream {
  readonly status: number;
  readonly contentType: string | null;
  readonly messages: StreamMessage[] = [];
  ended = false;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor({ status, headers, body }: Response) {
    this.status = status;
    this.contentType = headers.get("content-type");
    this.#reader = (body as ReadableStream<Uint8Array> | null)?.getReader();
    void this.#read();
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    let text = "";
    try {
      for (;;) {
        const next = await this.#reader?.read();
        if (!next || next.done) break;
        const events = `${text}${decoder.decode(next.value, { stream: true })}`.split("\n\n");
        text = events.pop() ?? "";
        for (const event of events) {
          if (event.startsWith("data: ")) this.messages.push(JSON.parse(event.slice(6)) as StreamMessage);
        }
      }
    } catch {
      // The connection was closed.
    }
    this.ended = true;
  }

  /** The first message of a type that matches. */
  async next<T extends StreamMessage["type"]>(
    type: T,
    matches: (message: Extract<StreamMessage, { type: T }>) => boolean = () => true,
  ): Promise<Extract<StreamMessage, { type: T }>> {
    const isWanted = (message: StreamMessage): message is Extract<StreamMessage, { type: T }> =>
      message.type === type && matches(message as Extract<StreamMessage, { type: T }>);
    return await waitFor(() => this.messages.find(isWanted), {
      timeoutMs: 60_000,
      what: `a message ${type}; received: ${this.messages.map((each) => each.type).join(", ")}`,
    });
  }

  /** The objects that it would show now, by name. */
  names(): string[] {
    const shown = new Set<string>();
    for (const message of this.messages) {
      if (message.type === "reset") shown.clear();
      if (message.type !== "object") continue;
      const name = nameOf(message.object);
      if (message.change === "DELETED") shown.delete(name);
      else shown.add(name);
    }
    return [...shown].toSorted();
  }

  /** Where a page would resume. */
  version(): string {
    return this.messages.reduce((last, message) => {
      const isVersion = message.type === "object" || message.type === "synced";
      return (isVersion && message.resourceVersion) || last;
    }, "");
  }

  async close(): Promise<void> {
    await this.#reader?.cancel().catch(() => undefined);
  }
}

export const nameOf = (object: unknown): string => (object as KubeObject).metadata.name ?? "";
