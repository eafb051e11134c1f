/** A scene with Stacks, Receivers, and the webhook endpoint of one or more replicas. */
import { createHmac } from "node:crypto";

import { receiverKind, type Receiver, type ReceiverSpec } from "@pko/api";
import { builtin, keyOf, metricsRegistry, silentLogger, type Controller, type Registry } from "@pko/kube";
import {
  ActiveReceivers,
  pushes,
  receiverController,
  receivers,
  referencePoller,
  WebhookEndpoint,
  webhookServer,
  type LeaderAddress,
  type Pushes,
  type WebhookServer,
} from "@pko/operator";
import { selfSignedCertificate } from "@pko/rpc/pki";
import { waitFor } from "@pko/testkit";

import type { Operator, OperatorParts } from "../harness/operator.ts";
import { stackWiring, type StackScene } from "../stack/scene.ts";

export const secret = "a secret that nobody can guess";

/** One replica: its endpoint, and while it leads its controllers. */
export interface Replica {
  readonly server: WebhookServer;
  readonly metrics: Registry;
  readonly operator: Operator;
  readonly active: ActiveReceivers;
  /** How many requests have been admitted or rejected. */
  started(): number;
  url(path: string): string;
}

interface ReplicaOptions {
  /** Of another replica, which leads. */
  readonly leader?: () => LeaderAddress;
  /** More controllers of the replica. */
  readonly more?: (parts: OperatorParts, pushes: Pushes) => readonly Controller[];
}

export async function startReplica(
  scene: StackScene,
  { leader, more = () => [] }: ReplicaOptions = {},
): Promise<Replica> {
  const { namespace, clock } = scene;
  const [reported, active, metrics] = [pushes(), new ActiveReceivers(clock), metricsRegistry()];
  const { client } = scene.rights;
  const references = referencePoller({ client, clock });
  const operator = scene.startOperator({ clock }, (parts) => {
    const { receivers: reflector } = parts.stores;
    const receiverControl = receiverController({ ...parts, reflector, active, isServed: true, references });
    const { controllers } = stackWiring(namespace, { pushes: reported })(parts);
    return { controllers: leader ? [] : [...controllers, receiverControl, ...more(parts, reported)] };
  });
  scene.defer(() => references.stop());
  const endpoint = new WebhookEndpoint({
    store: operator.stores.receivers.store,
    receivers: active,
    pushes: reported,
    metrics,
    isLeading: () => leader === undefined,
    leader: () => leader?.(),
    clock,
  });
  let started = 0;
  const handle = (request: Request): Promise<Response> => {
    // A request is admitted before the first pause.
    const response = endpoint.handle(request);
    started++;
    return response;
  };
  const server = webhookServer({
    listen: { hostname: "127.0.0.1", port: 0 },
    certificate: await selfSignedCertificate("webhooks", new Date()),
    handle,
    log: silentLogger,
  });
  const stop = server.start();
  scene.defer(stop);
  await operator.synced;
  const url = (path: string): string => `https://127.0.0.1:${server.port}${path}`;
  return { server, metrics, operator, active, started: () => started, url };
}

export async function createSecret(scene: StackScene, name: string, text = secret): Promise<void> {
  const object = { apiVersion: "v1", kind: "Secret", metadata: scene.ref(name), stringData: { token: text } };
  await scene.client.apply(builtin.secrets, object, { fieldManager: "test" });
}

export async function createReceiver(scene: StackScene, name: string, spec: Partial<ReceiverSpec> = {}): Promise<void> {
  const { apiVersion, kind } = receiverKind;
  const whole: ReceiverSpec = { type: "Gitea", secretRef: { name: "hooks" }, ...spec };
  await scene.client.apply(
    receivers,
    { apiVersion, kind, metadata: scene.ref(name), spec: whole },
    { fieldManager: "test" },
  );
}

export async function receiverUntil(
  scene: StackScene,
  name: string,
  is: (receiver: Receiver) => boolean,
): Promise<Receiver> {
  const found = await waitFor(
    async () => {
      const receiver = await scene.client.get(receivers, scene.ref(name));
      return is(receiver) ? receiver : undefined;
    },
    { timeoutMs: 60_000, what: `Receiver ${name}` },
  );
  return found;
}

const isReceiving = ({ status }: Receiver): boolean =>
  status?.conditions?.some(({ type, status: state }) => type === "Ready" && state === "True") ?? false;

/** Waits until the endpoint accepts its webhooks, which is a moment after the status says so. */
export async function receiverReady(scene: StackScene, replica: Replica, name: string): Promise<Receiver> {
  const receiver = await receiverUntil(scene, name, isReceiving);
  await waitFor(() => replica.active.secretOf(keyOf(receiver)) !== undefined);
  return receiver;
}

export const stallOf = ({ status }: Receiver): string | undefined =>
  status?.conditions?.find(({ type }) => type === "Stalled")?.reason;

export const pushBody = (repository: string, ref = "refs/heads/main"): string =>
  JSON.stringify({ ref, repository: { clone_url: repository, ssh_url: "", html_url: "" } });

export function signed(body: string, key = secret): Record<string, string> {
  const signature = createHmac("sha256", key).update(body).digest("hex");
  return { "content-type": "application/json", "x-gitea-event": "push", "x-gitea-signature": signature };
}

export async function post(url: string, body: BodyInit, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { method: "POST", body, headers, tls: { rejectUnauthorized: false } });
  await response.text();
  return response.status;
}

/** By result. */
export function counted(metrics: Registry): Record<string, number> {
  const lines = metrics.expose().matchAll(/^webhook_requests_total\{result="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, result = "", count]) => [result, Number(count)]));
}
