/** The poller of Git repositories, measured in its own process with a Git server on this machine: it needs no cluster. */
import { run } from "@pko/cluster";

import type { PollerFigures } from "../parts/git/poller.ts";
import { figure, type Findings } from "../report/figures.ts";
import { quantile } from "../report/statistics.ts";
import type { StandaloneScenario } from "./scenario.ts";

const blackHoles = 400;

export const git: StandaloneScenario = {
  name: "git",
  title: "polling of Git repositories",
  async runStandalone({ sizes: { repositories } }) {
    if (repositories === 0) return { figures: [] };
    const script = new URL("../parts/git/main.ts", import.meta.url).pathname;
    const size = [`--repositories=${repositories}`, `--holes=${blackHoles}`];
    const output = await run([process.execPath, script, ...size, "--json"]);
    return findings(JSON.parse(output) as PollerFigures, repositories);
  },
};

const minuteMs = 60_000;

/** Pure. */
export function findings(figures: PollerFigures, repositories: number): Findings {
  const { firstMs, cpuMs, polls, aloneMs, withNeighborsMs } = figures;
  const note = `${polls} polls of ${repositories} repositories`;
  const percentile = (id: string, title: string, values: readonly number[]) =>
    figure({ id, title, unit: "ms" }, [quantile(values, 0.99)]);
  return {
    figures: [
      ...figure({ id: "git.first", title: "every repository read once", unit: "ms" }, [firstMs]),
      ...figure({ id: "git.cpu", title: "CPU of polling for a minute", unit: "m", note }, [(cpuMs / minuteMs) * 1000]),
      ...figure({ id: "git.requested", title: "poll requested → result", unit: "ms" }, aloneMs),
      ...percentile("git.requested.p99", "the same, 99 %", aloneMs),
      ...figure(
        { id: "git.holes", title: `poll requested → result, ${2 * blackHoles + 1} neighbors`, unit: "ms" },
        withNeighborsMs,
      ),
      ...percentile("git.holes.p99", "the same, 99 %", withNeighborsMs),
    ],
  };
}
