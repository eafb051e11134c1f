/** The commands behind the Makefile's cluster targets. */
import { buildOwnCli } from "./cli-executable.ts";
import { clusterDown, clusterUp, ensurePackages, prepareCluster } from "./cluster.ts";
import { deploy } from "./deploy.ts";
import { clusterKubeconfig } from "./given-cluster.ts";
import { makeReleaseFiles } from "./release.ts";
import { superviseCluster } from "./supervisor.ts";
import { buildTools, toolNames, toolPath, type ToolName } from "./tools.ts";
import { UserError } from "./user-error.ts";

const commands: Record<string, (args: string[]) => Promise<void>> = {
  up: async () => await clusterUp({ dns: true }),
  down: clusterDown,
  kubeconfig: async () => console.log(clusterKubeconfig()),
  deploy: async ([values]) => await deploy(values),
  release: makeReleaseFiles,
  cli: async () => console.log(await buildOwnCli()),
  packages: ensurePackages,
  prepare: async () => void (await prepareCluster({ dns: true })),
  tools: async (names) => await buildTools(names.map(parseToolName)),
  run: runTool,
  supervise: async ([root = "", ...archives]) => await superviseCluster(root, archives),
};

/** Builds a tool if necessary, and runs it with the arguments. */
async function runTool([name = "", ...args]: readonly string[]): Promise<void> {
  const tool = parseToolName(name);
  await buildTools([tool]);
  const child = Bun.spawn([toolPath(tool), ...args], { stdin: "ignore", stdout: "inherit", stderr: "inherit" });
  process.exitCode = await child.exited;
}

function parseToolName(name: string): ToolName {
  const tool = toolNames.find((known) => known === name);
  if (tool === undefined) throw new UserError([`there is no tool ${name}: choose from ${toolNames.join(", ")}`]);
  return tool;
}

const [name = "", ...args] = process.argv.slice(2);
const command = commands[name];
if (command === undefined) {
  console.error(`usage: main.ts ${Object.keys(commands).join(" | ")}`);
  process.exit(2);
}
try {
  await command(args);
} catch (error) {
  const lines = error instanceof UserError ? error.problems : [error instanceof Error ? error.message : String(error)];
  for (const line of lines) console.error(`error: ${line}`);
  process.exit(1);
}
