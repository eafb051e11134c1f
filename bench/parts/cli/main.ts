/**
 * kubectl-pulumi with many Stacks: `bun bench/parts/cli/main.ts [--stacks=5000] [--rounds=20] [--json]`.
 *
 * The built executable and a real API server share the machine; no cluster is needed. Prints a table for people or, with
 * `--json`, one line of JSON for machines.
 */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { customResourceDefinitions, stackKind, type Stack } from "@pko/api";
import { buildCli } from "@pko/cluster";
import { builtin, resource, type Client } from "@pko/kube";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";

import { quantile } from "../../report/statistics.ts";
import { stackAt } from "../console/fleet-server.ts";
import type { CliFigures, CommandTime } from "./figures.ts";

const { values } = parseArgs({
  options: {
    stacks: { type: "string", default: "5000" },
    rounds: { type: "string", default: "20" },
    json: { type: "boolean", default: false },
  },
});

const stacks = resource<Stack>(stackKind);
const writers = 16;

async function measure(): Promise<CliFigures> {
  const folder = await mkdtemp(join(tmpdir(), "bench-cli-"));
  const server = await startApiServer();
  try {
    const executable = await buildCli(join(folder, "kubectl-pulumi"));
    await installCrds(server);
    await createFleet(server.client, Number(values.stacks));
    const measured = async (...args: readonly string[]): Promise<CommandTime[]> =>
      await times([executable, ...args, "--kubeconfig", server.kubeconfig]);
    return {
      bytes: (await stat(executable)).size,
      help: await measured("--help"),
      version: await measured("version"),
      get: await measured("get", "--all-namespaces"),
      load: loadavg()[0] ?? 0,
    };
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** After one run that is not counted: it fills the caches of the disk. */
async function times(command: readonly string[]): Promise<CommandTime[]> {
  const measured: CommandTime[] = [];
  for (let round = 0; round <= Number(values.rounds); round++) measured.push(await time(command));
  return measured.slice(1);
}

async function time(command: readonly string[]): Promise<CommandTime> {
  const start = performance.now();
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  await new Response(child.stdout).text();
  const code = await child.exited;
  if (code !== 0) throw new Error(`${command.join(" ")} exited with ${code}`);
  return { wallMs: performance.now() - start, cpuMs: Number(child.resourceUsage()?.cpuTime.total ?? 0n) / 1000 };
}

async function installCrds({ kubectl }: ApiServer): Promise<void> {
  const items = customResourceDefinitions();
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await kubectl(["apply", "--server-side", "-f", "-"], { input });
  const names = items.map(({ metadata }) => metadata.name);
  await kubectl(["wait", "crd", ...names, "--for=condition=Established", "--timeout=60s"]);
  const isServed = async (): Promise<boolean> => (await kubectl(["get", "stacks.pulumi.com", "-A"])) !== undefined;
  await waitFor(isServed, { timeoutMs: 30_000, what: "the Stacks to be served" });
}

async function createFleet(client: Client, count: number): Promise<void> {
  const fleet = Array.from({ length: count }, (_, index) => stackAt(index));
  const { apiVersion, kind } = builtin.namespaces;
  for (const name of new Set(fleet.map(({ metadata }) => metadata.namespace ?? ""))) {
    await client.create(builtin.namespaces, { apiVersion, kind, metadata: { name } });
  }
  const waiting = fleet.values();
  const write = async (): Promise<void> => {
    for (const stack of waiting) await createStack(client, stack);
  };
  await Promise.all(Array.from({ length: writers }, write));
}

async function createStack(client: Client, { status, metadata, ...rest }: Stack): Promise<void> {
  const ref = { name: metadata.name ?? "", namespace: metadata.namespace ?? "" };
  await client.create(stacks, { ...rest, metadata: ref });
  await client.patch(stacks, ref, { patch: { type: "merge", body: { status } }, subresource: "status" });
}

function table({ bytes, help, version, get, load }: CliFigures): string {
  const median = (all: readonly CommandTime[]): string => {
    const [wall, cpu] = [all.map(({ wallMs }) => wallMs), all.map(({ cpuMs }) => cpuMs)];
    return `${quantile(wall, 0.5).toFixed(0)} ms (95 %: ${quantile(wall, 0.95).toFixed(0)} ms), CPU time ${quantile(cpu, 0.5).toFixed(0)} ms`;
  };
  const rows = [
    ["size of the executable", `${(bytes / 1024 / 1024).toFixed(1)} MB`],
    ["--help", median(help)],
    ["version", median(version)],
    [`get -A, ${values.stacks} Stacks`, median(get)],
    ["load of the machine", load.toFixed(1)],
  ];
  return rows.map(([name = "", value = ""]) => `${name.padEnd(28)} ${value}`).join("\n");
}

const figures = await measure();
console.log(values.json ? JSON.stringify(figures) : table(figures));
process.exit(0);
