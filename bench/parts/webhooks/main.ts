/**
 * Hostile webhooks: `bun bench/parts/webhooks/main.ts [--requests=100000] [--width=64] [--json]`.
 *
 * One process has the endpoint, and this one attacks it: wrong signatures, huge bodies, malformed JSON, unknown repositories and
 * unknown paths. Fails if a request is not counted, if one causes a poll, or if memory grows.
 */
import { createHmac } from "node:crypto";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { parseArgs } from "node:util";

import type { EndpointFigures, EndpointStart } from "./endpoint.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "100000" },
    width: { type: "string", default: "64" },
    json: { type: "boolean", default: false },
  },
});

const secret = "a secret that nobody can guess";
const maxGrowthMiB = 64;

const child = Bun.spawn([process.execPath, new URL("endpoint.ts", import.meta.url).pathname, secret], {
  stdin: "pipe",
  stdout: "pipe",
});
const lines = createInterface({ input: Readable.fromWeb(child.stdout as never) })[Symbol.asyncIterator]();
const nextLine = async <T>(): Promise<T> => JSON.parse(String((await lines.next()).value)) as T;
const { port, path } = await nextLine<EndpointStart>();

async function figures(): Promise<EndpointFigures> {
  void child.stdin.write("\n");
  void child.stdin.flush();
  return await nextLine<EndpointFigures>();
}

function post(at: string, body: BodyInit, signature: string): () => Promise<Response> {
  const headers = { "x-gitea-event": "push", "x-gitea-signature": signature };
  const init = { method: "POST", body, headers, tls: { rejectUnauthorized: false } };
  return () => fetch(`https://127.0.0.1:${port}${at}`, init);
}

const sign = (body: string, key = secret): string => createHmac("sha256", key).update(body).digest("hex");
const push = JSON.stringify({ ref: "refs/heads/main", repository: { clone_url: "https://git.example/web" } });
const elsewhere = push.replace("/web", "/other");
const huge = new Uint8Array(2 * 1024 * 1024).fill(32);
const attacks = [
  post(path, push, sign(push, "a guess")),
  post(path, push, ""),
  post(path, "{", sign("{")),
  post(path, elsewhere, sign(elsewhere)),
  post(path, huge, sign(push)),
  post("/hooks/00000000000000000000000000000000", push, sign(push)),
];

async function attack(total: number): Promise<void> {
  let sent = 0;
  const sendAll = async (): Promise<void> => {
    while (sent < total) {
      const response = await attacks[sent++ % attacks.length]?.();
      await response?.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: Number(values.width) }, sendAll));
}

const total = Number(values.requests);
const warmUp = Math.min(5000, total);
await attack(warmUp);
const before = await figures();
const started = performance.now();
await attack(total);
const seconds = (performance.now() - started) / 1000;
const after = await figures();
child.kill();

const counted = Object.values(after.results).reduce((sum, count) => sum + count, 0);
const report = {
  requests: total,
  seconds: Math.round(seconds),
  perSecond: Math.round(total / seconds),
  cpuMsPerRequest: Number((((after.cpuSeconds - before.cpuSeconds) * 1000) / total).toFixed(3)),
  memoryMiB: { before: Math.round(before.rssMiB), after: Math.round(after.rssMiB) },
  uncounted: total + warmUp - counted,
  polls: after.polls,
  results: after.results,
};
if (values.json) console.log(JSON.stringify(report));
else console.table(Object.entries(report).map(([figure, value]) => ({ figure, value: JSON.stringify(value) })));
const isFine = report.uncounted === 0 && report.polls === 0 && after.rssMiB - before.rssMiB < maxGrowthMiB;
process.exit(isFine ? 0 : 1);
