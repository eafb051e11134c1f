/** A push to a monorepo that affects many Stacks, with the limits that the chart ships: it needs no cluster. */
import { run } from "@pko/cluster";

import type { PushFigures } from "../parts/push/occupancy.ts";
import { figure, type Findings, type Unit } from "../report/figures.ts";
import type { StandaloneScenario } from "./scenario.ts";

export const push: StandaloneScenario = {
  name: "push",
  title: "a push that affects many Stacks",
  async runStandalone({ sizes: { pushed } }) {
    if (pushed === 0) return { figures: [] };
    const script = new URL("../parts/push/main.ts", import.meta.url).pathname;
    return findings(JSON.parse(await run([process.execPath, script, `--stacks=${pushed}`, "--json"])) as PushFigures);
  },
};

/** Pure. */
export function findings(measured: PushFigures): Findings {
  const { stacks, deployed, durationMs, most, mostInNamespace, heldMs, quietMs, crowdedMs } = measured;
  const each = (unit: Unit, [id, title]: readonly [id: string, title: string], values: readonly number[]) =>
    figure({ id: `push.${id}`, title: `push: ${title}`, unit, note: `${stacks} Stacks` }, values);
  return {
    figures: [
      ...each("count", ["deployed", "Stacks that have deployed it"], [deployed]),
      ...each("ms", ["duration", "the last one after"], [durationMs]),
      ...each("count", ["slots", "most slots in use at a time"], [most]),
      ...each("count", ["slots.namespace", "most slots of one namespace"], [mostInNamespace]),
      ...each("ms", ["held", "a slot is held for"], heldMs),
      ...each("ms", ["quiet", "another tenant before: request → Update created"], quietMs),
      ...each("ms", ["crowded", "another tenant meanwhile: request → Update created"], crowdedMs),
    ],
  };
}
