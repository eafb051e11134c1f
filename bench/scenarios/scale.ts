/** Ten thousand idle Stacks with their history, or STACKS of them, with a real API server and the compiled operator: it needs no cluster. */
import { run } from "@pko/cluster";

import { memoryPerObject, type ScaleFigures } from "../parts/scale/figures.ts";
import { figure, type Findings, type Unit } from "../report/figures.ts";
import type { StandaloneScenario } from "./scenario.ts";

export const scale: StandaloneScenario = {
  name: "scale",
  title: "idle Stacks with a long history",
  async runStandalone({ sizes }) {
    const { stacks, updatesEach, windowS, settleS, changes } = sizes.scale;
    if (stacks === 0) return { figures: [] };
    const script = new URL("../parts/scale/main.ts", import.meta.url).pathname;
    const flags = { stacks, updates: updatesEach, window: windowS, settle: settleS, changes };
    const given = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    return findings(JSON.parse(await run([process.execPath, script, ...given, "--json"])) as ScaleFigures);
  },
};

const hourMs = 3_600_000;

/** Pure. */
export function findings({ phases, window, changes }: ScaleFigures): Findings {
  const last = phases.at(-1);
  if (!last) return { figures: [] };
  const note = `${last.stacks} Stacks, ${last.updates} Updates`;
  const memory = memoryPerObject(phases);
  const one = (unit: Unit, [id, title]: readonly [id: string, title: string], value: number) =>
    figure({ id: `scale.${id}`, title: `scale: ${title}`, unit, note }, [value]);
  const windowMs = window.seconds * 1000;
  const reads = window.requests - window.renewals;
  const writes = Object.entries(window.writes);
  return {
    figures: [
      ...one("MB", ["resident", "operator resident"], window.usage.residentMb),
      ...one("MB", ["anonymous", "operator anonymous"], window.usage.anonymousMb),
      ...one("MB", ["peak", "operator at its peak"], window.usage.peakMb),
      ...(memory ? one("KB", ["stack", "memory for each Stack"], memory.stackKb) : []),
      ...(memory?.updateKb === undefined ? [] : one("KB", ["update", "memory for each Update"], memory.updateKb)),
      ...one("ms", ["restart", "restart → caught up"], last.caughtUpMs),
      ...one("ms", ["restart.cpu", "CPU time of the restart"], last.startCpuMs),
      ...one("m", ["cpu", "CPU while idle"], (window.cpuMs / windowMs) * 1000),
      ...one("/h", ["requests", "API requests while idle, except for the Lease"], (reads * hourMs) / windowMs),
      ...(changes ? one("/s", ["changes", "changes"], changes.count / (changes.observedMs / 1000)) : []),
      ...(changes ? one("ms", ["change.cpu", "CPU time of a change"], changes.cpuMs / changes.count) : []),
      ...one("count", ["writes", `writes in ${window.seconds} s, except to the Lease`], total(writes)),
    ],
  };
}

const total = (counts: readonly (readonly [string, number])[]): number =>
  counts.reduce((sum, [, count]) => sum + count, 0);
