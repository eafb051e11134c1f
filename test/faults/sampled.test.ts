/** A few of the points of `make faults`, others every time. */
import { expect, test } from "bun:test";

import { runCampaign } from "./campaign.ts";
import { setStage } from "./stage.ts";

test("wherever the operator dies, the life of two Stacks is the same", async () => {
  await using stage = await setStage();
  const report = await runCampaign({ stage, width: 3, sample: 3 });
  const failures = [...report.values()].flatMap((tally) => tally.failures);
  const points = [...report.values()].reduce((sum, { hits }) => sum + Object.values(hits).reduce((a, b) => a + b), 0);
  console.log(`    ${points} points`);
  expect(failures).toEqual([]);
  expect(points).toBeGreaterThan(10);
}, 600_000);
