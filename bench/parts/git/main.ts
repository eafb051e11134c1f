/**
 * Polling many Git repositories: `bun bench/parts/git/main.ts [--repositories=10000] [--holes=400] [--json]`.
 *
 * Three processes share the machine: the Git server, the measured poller, and this one, which only waits. Prints a table for
 * people or, with `--json`, one line of JSON for machines.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { quantile } from "../../report/statistics.ts";
import type { PollerFigures, PollerOptions } from "./poller.ts";
import { silentDns, type ServerStart } from "./server.ts";

const { values } = parseArgs({
  options: {
    repositories: { type: "string", default: "10000" },
    holes: { type: "string", default: "400" },
    requests: { type: "string", default: "600" },
    every: { type: "string", default: "100" },
    latency: { type: "string", default: "20" },
    minute: { type: "string", default: "60000" },
    json: { type: "boolean", default: false },
  },
});

const script = (name: string): string => new URL(name, import.meta.url).pathname;

async function measure(): Promise<PollerFigures> {
  const server = Bun.spawn([process.execPath, script("server.ts"), values.latency], { stdout: "pipe" });
  const folder = await mkdtemp(join(tmpdir(), "pko-git-"));
  try {
    const resolver = join(folder, "resolv.conf");
    await writeFile(resolver, `nameserver ${silentDns}\n`);
    // In a mount namespace of its own, in which no DNS server responds.
    const isolated = ["unshare", "--mount", "sh", "-c", `mount --bind ${resolver} /etc/resolv.conf && exec "$@"`, "sh"];
    const start = JSON.parse(await firstLine(server.stdout)) as ServerStart;
    const options: PollerOptions = {
      ...start,
      repositories: Number(values.repositories),
      holes: Number(values.holes),
      requests: Number(values.requests),
      everyMs: Number(values.every),
      minuteMs: Number(values.minute),
    };
    const poller = Bun.spawn([...isolated, process.execPath, script("poller.ts"), JSON.stringify(options)], {
      stdout: "pipe",
      // As in the operator's image.
      env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "5000" },
    });
    return JSON.parse(await new Response(poller.stdout).text()) as PollerFigures;
  } finally {
    server.kill();
    await server.exited;
    await rm(folder, { recursive: true, force: true });
  }
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream.values({ preventCancel: true })) {
    text += decoder.decode(chunk, { stream: true });
    const end = text.indexOf("\n");
    if (end >= 0) return text.slice(0, end);
  }
  throw new Error("the Git server has ended");
}

function table(figures: PollerFigures): string {
  const { firstMs, firstCpuMs, cpuMs, polls, rssMb, aloneMs, withNeighborsMs, held } = figures;
  const times = (all: readonly number[]): string =>
    `p50 ${quantile(all, 0.5).toFixed(0)} ms, p99 ${quantile(all, 0.99).toFixed(0)} ms`;
  const rows = [
    ["every repository read once", `${(firstMs / 1000).toFixed(1)} s, ${(firstCpuMs / 1000).toFixed(1)} s of CPU time`],
    ["polls in a minute", String(polls)],
    ["CPU time in that minute", `${(cpuMs / 1000).toFixed(2)} s, ${(cpuMs / polls).toFixed(3)} ms for each poll`],
    ["cores", (cpuMs / Number(values.minute)).toFixed(3)],
    ["resident memory", `${rssMb.toFixed(0)} MB`],
    ["requested poll of another tenant", times(aloneMs)],
    [
      `the same with ${2 * Number(values.holes) + 1} neighbors who disturb it (${held} polls in flight)`,
      times(withNeighborsMs),
    ],
  ];
  return rows.map(([name = "", value = ""]) => `${name.padEnd(56)} ${value}`).join("\n");
}

const figures = await measure();
console.log(values.json ? JSON.stringify(figures) : table(figures));
