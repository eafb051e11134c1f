/** The measured process: a webhook endpoint with one Receiver. It reports its figures when it receives a line. */
import { createInterface } from "node:readline";

import type { Receiver } from "@pko/api";
import { metricsRegistry, silentLogger, type Key, type Store } from "@pko/kube";
import { ActiveReceivers, pushes, receiverIndexers, WebhookEndpoint, webhookServer } from "@pko/operator";
import { selfSignedCertificate } from "@pko/rpc/pki";

export interface EndpointStart {
  readonly port: number;
  readonly path: string;
}

export interface EndpointFigures {
  readonly rssMiB: number;
  readonly cpuSeconds: number;
  readonly results: Readonly<Record<string, number>>;
  readonly polls: number;
}

const [secret = ""] = process.argv.slice(2);
const receiver: Receiver = {
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Receiver",
  metadata: { namespace: "bench", name: "hooks", uid: crypto.randomUUID() },
  spec: { type: "Gitea", secretRef: { name: "hooks" } },
};
const [path = ""] = receiverIndexers.path(receiver);
const store = {
  byIndex: (_: string, value: string) => (value === path ? [receiver] : []),
} as unknown as Store<Receiver>;
const [active, reported, metrics] = [new ActiveReceivers(), pushes(), metricsRegistry()];
const key: Key = "bench/hooks";
active.activate(key, Buffer.from(secret));
let polls = 0;
reported.follow(({ repositories }) => {
  const isFollowed = repositories.includes("https://git.example/web");
  if (isFollowed) polls++;
  return isFollowed ? 1 : 0;
});

const endpoint = new WebhookEndpoint({
  store,
  receivers: active,
  pushes: reported,
  metrics,
  isLeading: () => true,
  leader: () => undefined,
});
const server = webhookServer({
  listen: { hostname: "127.0.0.1", port: 0 },
  certificate: await selfSignedCertificate("webhooks", new Date()),
  handle: (request) => endpoint.handle(request),
  log: silentLogger,
});
server.start();
const start: EndpointStart = { port: server.port, path };
console.log(JSON.stringify(start));

function figures(): EndpointFigures {
  Bun.gc(true);
  const { user, system } = process.cpuUsage();
  const lines = metrics.expose().matchAll(/^webhook_requests_total\{result="(\w+)"\} (\d+)$/gm);
  return {
    rssMiB: process.memoryUsage.rss() / 2 ** 20,
    cpuSeconds: (user + system) / 1e6,
    results: Object.fromEntries([...lines].map(([, result = "", count]) => [result, Number(count)])),
    polls,
  };
}

for await (const _ of createInterface({ input: process.stdin })) console.log(JSON.stringify(figures()));
process.exit(0);
