/** A random sample of the crash points of `make faults`. */
import { afterAll, beforeAll, expect, test } from "bun:test";

import { seededRandom, testSeed } from "@pko/testkit";

import { phaseEnd, runCampaign, runWithoutCrash, type CampaignOptions, type Ends } from "./campaign.ts";
import { findDifference } from "./judgement.ts";
import { Lifecycle, type LifecycleOptions } from "./lifecycle.ts";
import { stories, type Phase, type Story } from "./script.ts";
import { setStage, type Stage } from "./stage.ts";

const timeoutMs = 600_000;
const seed = testSeed("crash points and faults");
/** A lifecycle without approvals, and a random one with them. */
const names: readonly Story[] = ["updates", seededRandom(seed).pick(["control", "decisions"])];
/** Of each phase. */
const one = { updates: 1, control: 1, decisions: 1 };

let stage: Stage;
let reference: Ends;

beforeAll(async () => {
  stage = await setStage();
  reference = await runWithoutCrash(stage, names);
}, timeoutMs);
afterAll(() => stage[Symbol.asyncDispose]());

async function pointsWithoutFailure(options: Pick<CampaignOptions, "sample" | "crashMode" | "width">): Promise<number> {
  const report = await runCampaign({ stage, stories: names, reference, seed, ...options });
  const points = [...report.values()].reduce((sum, { hits }) => sum + Object.values(hits).reduce((a, b) => a + b), 0);
  console.log(`    ${points} points`);
  expect([...report.values()].flatMap(({ failures }) => failures)).toEqual([]);
  expect([...report.values()].map(({ forbidden }) => forbidden)).toEqual([...report.values()].map(() => 0));
  return points;
}

async function expectSameOutcomes(options: LifecycleOptions): Promise<Lifecycle[]> {
  const run = async (order: readonly Phase[]): Promise<Lifecycle> => {
    await using lifecycle = await Lifecycle.start(stage, options);
    for (const phase of order) {
      expect(findDifference(phaseEnd(reference, phase), await lifecycle.run(phase)), phase).toBeUndefined();
    }
    return lifecycle;
  };
  return await Promise.all(names.map((name) => run(stories[name])));
}

test(
  "wherever the operator crashes, the outcomes are the same",
  async () => {
    expect(await pointsWithoutFailure({ width: 4, sample: one })).toBeGreaterThan(10);
  },
  timeoutMs,
);

test("a pattern that matches no crash point is an error", async () => {
  const campaign = runCampaign({
    stage,
    stories: names,
    reference,
    seed,
    width: 1,
    sample: one,
    only: /no such point/,
  });
  const outcome: unknown = await campaign.catch((error: unknown) => error);
  expect(String(outcome)).toContain("no crash point matches /no such point/");
});

test.concurrent(
  "wherever a leader is frozen, the next one takes over, and the first does nothing when it resumes",
  async () => {
    expect(await pointsWithoutFailure({ width: 2, sample: one, crashMode: "freeze" })).toBeGreaterThan(3);
  },
  timeoutMs,
);

test.concurrent(
  "when one in ten calls to the API server and to agents fails, the outcomes are the same",
  async () => {
    const lifecycles = await expectSameOutcomes({ faultRate: 0.1, seed });
    const count = lifecycles.reduce((sum, { injectedFaults }) => sum + injectedFaults, 0);
    console.log(`    ${count} injected faults`);
    expect(count).toBeGreaterThan(20);
  },
  timeoutMs,
);

test.concurrent(
  "when the operator's caches are up to a second old, differently for each kind, the outcomes are the same",
  async () => {
    await expectSameOutcomes({ lagMs: 1000, seed });
  },
  timeoutMs,
);
