/** A scene with Notifications, an HTTP server that receives their messages, and Updates that end when the test says so. */
import {
  notificationKind,
  stackKind,
  updateKind,
  type Condition,
  type Notification,
  type NotificationSpec,
  type UpdateSpec,
} from "@pko/api";
import { builtin, logger, timestamp } from "@pko/kube";
import { notificationController, notifications, referencePoller, stacks, updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { JumpingClock } from "../harness/jumping-clock.ts";
import type { Operator } from "../harness/operator.ts";
import { openPlace, Scene, testTimeoutMs, type SceneParts } from "../harness/scene.ts";

export { testTimeoutMs };

export interface Received {
  readonly path: string;
  readonly contentType: string;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

type Respond = () => Response | Promise<Response>;

/** Responds with 200, unless a path has another response. */
class Sink {
  readonly received: Received[] = [];
  readonly responses = new Map<string, Respond>();
  readonly #server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => this.#receive(request) });

  url(path: string): string {
    return `http://127.0.0.1:${this.#server.port}/${path}`;
  }

  at(path: string): Received[] {
    return this.received.filter((each) => each.path === path);
  }

  stop(): void {
    void this.#server.stop(true);
  }

  async #receive(request: Request): Promise<Response> {
    const path = new URL(request.url).pathname.slice(1);
    const { headers } = request;
    const body: unknown = await request.json();
    const authorization = headers.get("authorization") ?? undefined;
    this.received.push({ path, contentType: headers.get("content-type") ?? "", authorization, body });
    return await (this.responses.get(path)?.() ?? new Response("ok"));
  }
}

interface SceneOptions {
  /** How long a sink may take. A message that takes longer is sent again, which other tests do not expect. */
  readonly sendTimeoutMs?: number;
}

export class NotificationScene extends Scene {
  readonly clock = new JumpingClock();
  readonly sink = new Sink();
  readonly logged: string[] = [];
  readonly #sendTimeoutMs: number;
  #operator: Operator | undefined;

  private constructor(parts: SceneParts, { sendTimeoutMs = 60_000 }: SceneOptions) {
    super(parts);
    this.#sendTimeoutMs = sendTimeoutMs;
    this.defer(() => this.sink.stop());
  }

  static async open(options: SceneOptions = {}): Promise<NotificationScene> {
    const scene = new NotificationScene(await openPlace(), options);
    scene.start();
    return scene;
  }

  get operator(): Operator {
    if (!this.#operator) throw new Error("no operator is running");
    return this.#operator;
  }

  start(): void {
    const { client } = this.rights;
    const references = referencePoller({ client, clock: this.clock });
    this.defer(() => references.stop());
    const log = logger({ level: "debug", write: (line) => void this.logged.push(line) });
    this.#operator = this.startOperator({ clock: this.clock }, ({ stores, ...parts }) => {
      const { notifications: notificationStore, stacks: stackStore, updates: updateStore } = stores;
      const sending = { policy: { allowHttp: true, allowedAddresses: ["127.0.0.1"] }, timeoutMs: this.#sendTimeoutMs };
      const reflectors = { notifications: notificationStore, stacks: stackStore, updates: updateStore };
      return { controllers: [notificationController({ ...parts, reflectors, references, sending, log })] };
    });
  }

  /** Returns when every Notification has been reconciled. */
  async restart(): Promise<void> {
    await this.operator.stop();
    const before = this.logged.length;
    this.start();
    const isReconciled = (): boolean => this.logged.slice(before).some((line) => line.includes('"reconciled"'));
    await waitFor(isReconciled, { what: "the first pass after a restart" });
  }

  async secret(name: string, data: Readonly<Record<string, string>>): Promise<void> {
    const object = { apiVersion: "v1", kind: "Secret", metadata: this.ref(name), stringData: data };
    await this.client.apply(builtin.secrets, object, { fieldManager: "test" });
  }

  /** With a Secret that has the sink's URL, under a path with the name of the Notification. Collects until the test jumps. */
  async notification(name: string, spec: Partial<NotificationSpec> = {}): Promise<void> {
    await this.secret(name, { url: this.sink.url(name) });
    await this.apply(name, { type: "Slack", secretRef: { name }, groupSeconds: 300, ...spec });
    await this.becomes(name, "ready", isReady);
  }

  async apply(name: string, spec: NotificationSpec): Promise<void> {
    const { apiVersion, kind } = notificationKind;
    const object = { apiVersion, kind, metadata: this.ref(name), spec };
    await this.client.apply(notifications, object, { fieldManager: "test" });
  }

  async becomes(name: string, what: string, is: (object: Notification) => boolean): Promise<Notification> {
    return await this.untilObject(notifications, name, { what, is, timeoutMs: testTimeoutMs / 2 });
  }

  /** An Update that ends now. Waits until the operator has seen it. */
  async update(name: string, ending: Partial<Ending> = {}): Promise<void> {
    await this.endUpdate(name, ending);
    const { store } = this.operator.stores.updates;
    await waitFor(() => store.get(`${this.namespace}/${name}`)?.status?.conditions);
  }

  async endUpdate(name: string, ending: Partial<Ending> = {}): Promise<void> {
    const { failure, spec = {}, status = {} } = ending;
    const { apiVersion, kind } = updateKind;
    const metadata = this.ref(name);
    const whole: UpdateSpec = { workspaceName: name, stackName: "dev", type: "up", ...spec };
    await this.client.create(updates, { apiVersion, kind, metadata, spec: whole });
    const body = { status: { startTime: this.#time(), ...status, conditions: this.#conditions(failure) } };
    await this.client.patch(updates, metadata, { patch: { type: "merge", body }, subresource: "status" });
  }

  /** A Stack with a status. */
  async stack(name: string, status: object = {}): Promise<void> {
    const { apiVersion, kind } = stackKind;
    const metadata = this.ref(name);
    const spec = { stack: "dev", programRef: { name: "program" } };
    await this.client.apply(stacks, { apiVersion, kind, metadata, spec }, { fieldManager: "test" });
    const body = { status: { lastUpdate: { lastResyncTime: this.#time() }, ...status } };
    await this.client.patch(stacks, metadata, { patch: { type: "merge", body }, subresource: "status" });
    const { store } = this.operator.stores.stacks;
    await waitFor(() => store.get(`${this.namespace}/${name}`)?.status?.lastUpdate);
  }

  stalled(reason: string, message: string): object {
    const times = { lastTransitionTime: this.#time(), observedGeneration: 1 };
    return {
      conditions: [
        { type: "Ready", status: "False", reason: "NotReadyStalled", message, ...times },
        { type: "Stalled", status: "True", reason, message, ...times },
      ],
    };
  }

  async deleteUpdate(name: string): Promise<void> {
    await this.client.delete(updates, this.ref(name));
    const { store } = this.operator.stores.updates;
    await waitFor(() => store.get(`${this.namespace}/${name}`) === undefined);
  }

  /** Waits for messages at a path. */
  async receives(path: string, count: number): Promise<Received[]> {
    await waitFor(() => this.sink.at(path).length >= count, {
      timeoutMs: 45_000,
      what: `${count} messages at ${path}`,
    });
    return this.sink.at(path);
  }

  #time(): string {
    return timestamp(this.clock.now());
  }

  #conditions(failure: string | undefined): Condition[] {
    const reason = failure === undefined ? "UpdateSucceeded" : "UpdateFailed";
    const times = { lastTransitionTime: this.#time(), observedGeneration: 1, message: failure ?? "" };
    return [
      { type: "Complete", status: "True", reason, ...times },
      { type: "Failed", status: failure === undefined ? "False" : "True", reason, ...times },
    ];
  }
}

interface Ending {
  /** Why it failed. */
  readonly failure: string;
  readonly spec: UpdateSpec;
  readonly status: object;
}

export const readyReason = ({ status }: Notification): string | undefined =>
  status?.conditions?.find(({ type }) => type === "Ready")?.reason;

export const isReady = (object: Notification): boolean =>
  readyReason(object) === "Delivering" && object.status?.observedGeneration === object.metadata.generation;

export const stallOf = ({ status }: Notification): string | undefined =>
  status?.conditions?.find(({ type }) => type === "Stalled")?.reason;
