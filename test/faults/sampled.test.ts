/** A few of the points of `make faults`, others every time. */
import { afterAll, beforeAll, expect, test } from "bun:test";

import { endOf, runCampaign, undisturbed, type CampaignOptions, type Ends } from "./campaign.ts";
import { differenceOf } from "./judgement.ts";
import { Life, type LifeOptions } from "./life.ts";
import { phases } from "./script.ts";
import { setStage, type Stage } from "./stage.ts";

const patienceMs = 600_000;

let stage: Stage;
let reference: Ends;

beforeAll(async () => {
  stage = await setStage();
  reference = await undisturbed(stage);
}, patienceMs);
afterAll(() => stage[Symbol.asyncDispose]());

async function pointsWithoutFailure(options: Pick<CampaignOptions, "sample" | "blow" | "width">): Promise<number> {
  const report = await runCampaign({ stage, reference, ...options });
  const points = [...report.values()].reduce((sum, { hits }) => sum + Object.values(hits).reduce((a, b) => a + b), 0);
  console.log(`    ${points} points`);
  expect([...report.values()].flatMap(({ failures }) => failures)).toEqual([]);
  expect([...report.values()].map(({ forbidden }) => forbidden)).toEqual([...report.values()].map(() => 0));
  return points;
}

async function sameLife(options: LifeOptions): Promise<Life> {
  await using life = await Life.begin(stage, options);
  for (const phase of phases) {
    expect(differenceOf(endOf(reference, phase), await life.run(phase)), phase).toBeUndefined();
  }
  return life;
}

test(
  "wherever the operator dies, the life of two Stacks is the same",
  async () => {
    expect(await pointsWithoutFailure({ width: 3, sample: 3 })).toBeGreaterThan(10);
  },
  patienceMs,
);

test("a pattern that matches no crash point is an error", async () => {
  const campaign = runCampaign({ stage, reference, width: 1, sample: 1, only: /no such point/ });
  const outcome: unknown = await campaign.catch((error: unknown) => error);
  expect(String(outcome)).toContain("no crash point matches /no such point/");
});

test.concurrent(
  "wherever a leader is frozen, the next one goes on, and the first, when it wakes, does nothing more",
  async () => {
    expect(await pointsWithoutFailure({ width: 1, sample: 1, blow: "freeze" })).toBeGreaterThan(3);
  },
  patienceMs,
);

test.concurrent(
  "one call in ten goes wrong, of the API server and of agents, and the life of two Stacks is the same",
  async () => {
    const life = await sameLife({ trouble: 0.1 });
    console.log(`    ${life.troubles} troubles`);
    expect(life.troubles).toBeGreaterThan(20);
  },
  patienceMs,
);

test.concurrent(
  "what the operator knows is up to a second old, of each kind otherwise, and the life of two Stacks is the same",
  async () => {
    await sameLife({ lagMs: 1000 });
  },
  patienceMs,
);
