/** A random sample of the crash points of `make faults`, in a random lifecycle: each takes 13 seconds of CPU for each test. */
import { afterAll, beforeAll, expect, test } from "bun:test";

import { seededRandom, testSeed } from "@pko/testkit";

import { phaseEnd, runCampaign, runWithoutCrash, type CampaignOptions, type Ends } from "./campaign.ts";
import { findDifference } from "./judgement.ts";
import { Lifecycle, type LifecycleOptions } from "./lifecycle.ts";
import { stories, type Phase, type Story } from "./script.ts";
import { setStage, type Stage } from "./stage.ts";
import { disconnected, traceReceiver, type ReceivedSpan, type TraceReceiver } from "../traces/receiver.ts";

const timeoutMs = 600_000;
const seed = testSeed("crash points and faults");
const name = seededRandom(seed).pick<Story>(["updates", "control", "decisions"]);
const names: readonly Story[] = [name];
/** Of each phase. */
const one = { updates: 1, control: 1, decisions: 1 };

let stage: Stage;
/** Without a crash. */
let reference: Ends;

beforeAll(async () => {
  stage = await setStage();
  reference = await runWithoutCrash(stage, names);
}, timeoutMs);
afterAll(() => stage[Symbol.asyncDispose]());

/** When it is stopped, the operator has sent all spans. */
async function runTraced(environment: TraceReceiver["environment"], ...phases: Phase[]): Promise<void> {
  await using lifecycle = await Lifecycle.start(stage, { environment });
  for (const phase of phases) await lifecycle.run(phase);
}

/** Of the updates that run for a new commit. */
function tracesOfCommits(receiver: TraceReceiver): (readonly ReceivedSpan[])[] {
  const isForCommit = ({ attributes }: ReceivedSpan): boolean =>
    attributes["pulumi.stack.object"] === "base" &&
    /^the (?:first update|new revision)/.test(attributes["pulumi.trigger"] ?? "");
  return [...receiver.traces().values()].filter((trace) => trace.some(isForCommit));
}

const named = (trace: readonly ReceivedSpan[], name: string): ReceivedSpan[] =>
  trace.filter((span) => span.name === name);

test(
  "every trace is connected, and one leads from each pushed commit to the last resource of its update",
  async () => {
    using receiver = traceReceiver();
    await runTraced(receiver.environment, "create", "new commit");
    expect([...receiver.traces().values()].flatMap(disconnected)).toEqual([]);
    const traces = tracesOfCommits(receiver);
    expect(traces).toHaveLength(2);
    for (const trace of traces) {
      const [root] = named(trace, "update up");
      const [poll] = named(trace, "git poll");
      const [run] = named(trace, "run");
      expect(root?.attributes["pulumi.reason"]).toBe("UpdateSucceeded");
      expect(run?.attributes["pulumi.revision"]).toBe(poll?.attributes["pulumi.revision"] ?? "");
      for (const name of ["reconcile Stack", "reconcile Update", "prepare", "prepare source", "pulumi up"]) {
        expect(named(trace, name).length, name).toBeGreaterThanOrEqual(1);
      }
      const resources = trace.flatMap(({ attributes }) => attributes["pulumi.resource.name"] ?? []);
      expect(resources).toContain("kept");
    }
  },
  timeoutMs,
);

async function pointsWithoutFailure(options: Pick<CampaignOptions, "sample" | "crashMode" | "width">): Promise<number> {
  const report = await runCampaign({ stage, stories: names, reference, seed, ...options });
  const points = [...report.values()].reduce((sum, { hits }) => sum + Object.values(hits).reduce((a, b) => a + b), 0);
  console.log(`    ${points} points`);
  expect([...report.values()].flatMap(({ failures }) => failures)).toEqual([]);
  expect([...report.values()].map(({ forbidden }) => forbidden)).toEqual([...report.values()].map(() => 0));
  return points;
}

async function expectSameOutcomes(options: LifecycleOptions): Promise<Lifecycle> {
  await using lifecycle = await Lifecycle.start(stage, options);
  for (const phase of stories[name]) {
    expect(findDifference(phaseEnd(reference, phase), await lifecycle.run(phase)), phase).toBeUndefined();
  }
  return lifecycle;
}

test(
  "wherever the operator crashes, the outcomes are the same",
  async () => {
    expect(await pointsWithoutFailure({ width: 1, sample: one })).toBeGreaterThan(stories[name].length / 2);
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
    expect(await pointsWithoutFailure({ width: 1, sample: one, crashMode: "freeze" })).toBeGreaterThan(1);
  },
  timeoutMs,
);

test.concurrent(
  "when one in ten calls to the API server and to agents fails, the outcomes are the same",
  async () => {
    const { injectedFaults } = await expectSameOutcomes({ faultRate: 0.1, seed });
    console.log(`    ${injectedFaults} injected faults`);
    expect(injectedFaults).toBeGreaterThan(10);
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
