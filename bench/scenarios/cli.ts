/** kubectl-pulumi with many Stacks, measured against an API server of its own: it needs no cluster. */
import { run } from "@pko/cluster";

import type { CliFigures, CommandTime } from "../parts/cli/figures.ts";
import { figure, type Findings } from "../report/figures.ts";
import type { StandaloneScenario } from "./scenario.ts";

export const cli: StandaloneScenario = {
  name: "cli",
  title: "kubectl pulumi",
  async runStandalone({ sizes: { cliStacks } }) {
    const script = new URL("../parts/cli/main.ts", import.meta.url).pathname;
    const output = await run([process.execPath, script, `--stacks=${cliStacks}`, "--json"]);
    return findings(JSON.parse(output) as CliFigures, cliStacks);
  },
};

/** Pure. */
export function findings({ bytes, help, version, get }: CliFigures, stacks: number): Findings {
  const wall = (all: readonly CommandTime[]): number[] => all.map(({ wallMs }) => wallMs);
  const cpu = (all: readonly CommandTime[]): number[] => all.map(({ cpuMs }) => cpuMs);
  const note = `${stacks} Stacks`;
  return {
    figures: [
      ...figure({ id: "cli.size", title: "kubectl pulumi: size of the executable", unit: "MB" }, [bytes / 1024 ** 2]),
      ...figure({ id: "cli.help", title: "kubectl pulumi --help", unit: "ms" }, wall(help)),
      ...figure({ id: "cli.help.cpu", title: "the same, CPU time", unit: "ms" }, cpu(help)),
      ...figure({ id: "cli.version", title: "kubectl pulumi version", unit: "ms" }, wall(version)),
      ...figure({ id: "cli.get", title: "kubectl pulumi get -A", unit: "ms", note }, wall(get)),
      ...figure({ id: "cli.get.cpu", title: "the same, CPU time", unit: "ms", note }, cpu(get)),
    ],
  };
}
