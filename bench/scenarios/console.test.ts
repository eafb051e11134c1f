import { expect, test } from "bun:test";

import type { Visit } from "../parts/console/figures.ts";
import { findings } from "./console.ts";

const visit = (firstMs: number): Visit => ({
  loadMs: 100,
  firstMs,
  allMs: 900,
  cpuMs: 300,
  longestTaskMs: 60,
  scroll: { frames: 300, medianMs: 16, p95Ms: 20, slowShare: 0, cpuMsPerFrame: 8, longTasks: 0 },
});

test("sizes are in KB, and times are those of all visits", () => {
  const { figures } = findings({ scriptBytes: 40_960, styleBytes: 1024, visits: [visit(200), visit(400)], load: 1 }, 5);
  const medians = Object.fromEntries(figures.map(({ id, summary }) => [id, summary.median]));
  expect(medians).toMatchObject({ "console.script": 40, "console.style": 1, "console.first": 300, "console.cpu": 300 });
  expect(figures.at(-1)?.note).toBe("5 Stacks");
});
