/**
 * The cost of the agent: memory when idle and after work, time from `Start` to the CLI, and a whole update compared with the
 * bare CLI. `bun bench/parts/agent/main.ts [rounds]` prints a table, with `--json` the figures.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buildAgent } from "@pko/agent/build";
import { AgentWorkspace } from "@pko/agent/testing";
import { toolPath } from "@pko/cluster";
import type { Source } from "@pko/rpc";

const pulumi = toolPath("pulumi");
const toolFolders = [dirname(pulumi), dirname(toolPath("pulumi-language-yaml"))];

const rounds = Number(process.argv.find((argument) => /^\d+$/.test(argument)) ?? 5);
const folder = mkdtempSync(join(tmpdir(), "pko-bench-agent-"));
const executable = join(folder, "agent");
const cliTimes = join(folder, "cli-times");

const source = (input: string): Source => ({
  kind: "files",
  files: {
    "Pulumi.yaml": JSON.stringify({
      name: "bench",
      runtime: "yaml",
      resources: { a: { type: "pulumi:index:Stash", properties: { input } } },
      outputs: { x: "${a.output}" },
    }),
  },
});

/** Milliseconds since the epoch, to the microsecond. */
const now = (): number => performance.timeOrigin + performance.now();

interface Memory {
  /** Private memory, without pages of the executable that agents share. */
  readonly privateMb: number;
  readonly residentMb: number;
}

function readMemory(pid: number): Memory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const kb = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0);
  const mb = (value: number): number => Math.round(value / 102.4) / 10;
  return { residentMb: mb(kb("Rss")), privateMb: mb(kb("Private_Dirty") + kb("Private_Clean")) };
}

function lastCliStart(): number {
  return Number(readFileSync(cliTimes, "utf8").trimEnd().split("\n").at(-1)) / 1e6;
}

const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round((sorted[Math.floor(sorted.length / 2)] ?? 0) * 10) / 10;
};

async function measure() {
  buildAgent({ outfile: executable });
  const web = new AgentWorkspace({ pulumi, path: toolFolders, beforeCli: `date +%s%N >> '${cliTimes}'` });
  try {
    const began = now();
    await web.start({ command: [executable] });
    const readyMs = now() - began;
    await Bun.sleep(3_000);
    const idle = readMemory(web.pid);
    const coldBegan = now();
    await web.prepare(source("cold"));
    const coldPrepareMs = now() - coldBegan;
    const samples = { prepare: [] as number[], startToCli: [] as number[], update: [] as number[] };
    for (let round = 0; round < rounds; round += 1) {
      const begin = now();
      await web.prepare(source(`round ${round}`));
      const start = now();
      await web.startRun(`run-${round}`, { kind: "up" });
      await web.result(`run-${round}`);
      samples.prepare.push(start - begin);
      samples.startToCli.push(lastCliStart() - start);
      samples.update.push(now() - start);
    }
    await Bun.sleep(3_000);
    return {
      executableMb: Math.round(statSync(executable).size / 1e6),
      readyMs: median([readyMs]),
      idle,
      afterRuns: readMemory(web.pid),
      coldPrepareMs: median([coldPrepareMs]),
      warmPrepareMs: median(samples.prepare),
      startToCliMs: median(samples.startToCli),
      updateMs: median(samples.update),
      bareUpdateMs: median(bareUpdates(web)),
    };
  } finally {
    await web.dispose();
  }
}

/** The same update with the bare CLI, in the same workspace. */
function bareUpdates(web: AgentWorkspace): number[] {
  const cwd = join(web.share, "workspace");
  const env = {
    PATH: `${toolFolders.join(":")}:${process.env["PATH"] ?? ""}`,
    HOME: join(web.root, "home"),
    PULUMI_HOME: join(web.root, "home", ".pulumi"),
    PULUMI_BACKEND_URL: `file://${web.backend}`,
    PULUMI_CONFIG_PASSPHRASE: "canary-passphrase",
    PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER: "true",
    PULUMI_SKIP_UPDATE_CHECK: "true",
  };
  return Array.from({ length: rounds }, (_, round) => {
    const project = join(cwd, "Pulumi.yaml");
    writeFileSync(project, readFileSync(project, "utf8").replace(/"input":"[^"]*"/, `"input":"bare ${round}"`));
    const begin = now();
    execFileSync(pulumi, ["up", "--yes", "--skip-preview", "--stack=dev", "--non-interactive"], {
      cwd,
      env,
      stdio: "pipe",
    });
    return now() - begin;
  });
}

if (!existsSync(pulumi)) throw new Error(`there is no Pulumi CLI at ${pulumi}: run \`make cluster\` first`);
try {
  const figures = await measure();
  const table: readonly (readonly [string, string])[] = [
    ["executable", `${figures.executableMb} MB`],
    ["process start to serving", `${figures.readyMs} ms`],
    ["idle, resident (private)", `${figures.idle.residentMb} MB (${figures.idle.privateMb} MB)`],
    [
      `after ${rounds} updates, resident (private)`,
      `${figures.afterRuns.residentMb} MB (${figures.afterRuns.privateMb} MB)`,
    ],
    ["first Prepare: source, stack", `${figures.coldPrepareMs} ms`],
    ["next Prepare: a new program", `${figures.warmPrepareMs} ms`],
    ["Start to the CLI's start", `${figures.startToCliMs} ms`],
    ["update, Start to result", `${figures.updateMs} ms`],
    ["the same update with the bare CLI", `${figures.bareUpdateMs} ms`],
  ];
  if (process.argv.includes("--json")) console.log(JSON.stringify(figures, null, 2));
  else for (const [name, value] of table) console.log(`${name.padEnd(44)} ${value}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
