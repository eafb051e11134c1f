/** The console with many Stacks in Chromium, measured in its own process: it needs no cluster. */
import { existsSync } from "node:fs";

import { run } from "@pko/cluster";

import { browserPath } from "../../test/browser/browser-path.ts";
import type { ConsoleFigures, Visit } from "../parts/console/figures.ts";
import { figure, type Findings, type Unit } from "../report/figures.ts";
import type { StandaloneScenario } from "./scenario.ts";

export const webConsole: StandaloneScenario = {
  name: "console",
  title: "the console",
  async runStandalone({ sizes: { consoleStacks } }) {
    if (!existsSync(browserPath)) {
      return { figures: [], skipped: [{ title: webConsole.title, reason: `${browserPath} is missing` }] };
    }
    const script = new URL("../parts/console/main.ts", import.meta.url).pathname;
    const output = await run([process.execPath, script, `--stacks=${consoleStacks}`, "--json"]);
    return findings(JSON.parse(output) as ConsoleFigures, consoleStacks);
  },
};

/** Pure. */
export function findings({ scriptBytes, styleBytes, visits }: ConsoleFigures, stacks: number): Findings {
  const size = (id: string, title: string, bytes: number) =>
    figure({ id: `console.${id}`, title: `console: ${title}, compressed`, unit: "KB" }, [bytes / 1024]);
  const times = (id: string, title: string, pick: (visit: Visit) => number) => {
    const unit: Unit = "ms";
    return figure(
      { id: `console.${id}`, title: `console: ${title}`, unit, note: `${stacks} Stacks` },
      visits.map(pick),
    );
  };
  return {
    figures: [
      ...size("script", "JavaScript", scriptBytes),
      ...size("style", "style sheet", styleBytes),
      ...times("load", "page loaded", ({ loadMs }) => loadMs),
      ...times("first", "first Stacks shown", ({ firstMs }) => firstMs),
      ...times("all", "all Stacks shown", ({ allMs }) => allMs),
      ...times("cpu", "CPU time of the page until then", ({ cpuMs }) => cpuMs),
      ...times("task", "longest task until then", ({ longestTaskMs }) => longestTaskMs),
      ...times("frame.p95", "frame while scrolling, 95 %", ({ scroll }) => scroll.p95Ms),
      ...times("frame.cpu", "CPU time of a frame while scrolling", ({ scroll }) => scroll.cpuMsPerFrame),
    ],
  };
}
